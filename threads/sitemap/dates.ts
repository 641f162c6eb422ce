/**
 * Dates of sitemaps and feeds: W3C (https://www.w3.org/TR/NOTE-datetime, which RFC 3339 refines) in each of its
 * precisions, and RFC 822 with the four-digit years of RFC 2822. What leaves its time zone open is no date of either: it
 * could be half a day off. Pure; no text makes it throw, and none longer than `DATE_CHARS_MAX` is looked at.
 */
const DATE_CHARS_MAX = 64
const DAY_MINUTES = 24 * 60

const w3c = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d))?)?)?$/i
const rfc822 = /^(?:[a-z]{3,9},? +)?(\d{1,2}) +([a-z]{3,9}) +(\d{4}|\d\d) +(\d\d?):(\d\d)(?::(\d\d))? +([a-z]{1,3}|[+-]\d{4})$/i

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
/** Hours east of Greenwich; RFC 822 section 5.1. Its military letters were wrong and mean nothing (RFC 2822 section 4.3). */
const zones: Readonly<Record<string, number>> = { z: 0, ut: 0, utc: 0, gmt: 0, est: -5, edt: -4, cst: -6, cdt: -5, mst: -7, mdt: -6, pst: -8, pdt: -7 }

interface Parts {
  readonly year: number
  /** From 1. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly ms: number
  readonly zone: string
}

function minutesEast(zone: string): number | undefined {
  const hours = zones[zone.toLowerCase()]
  if (hours !== undefined) return hours * 60
  const [, sign, hour, minute] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? []
  if (sign === undefined || Number(minute) > 59) return undefined
  const minutes = Number(hour) * 60 + Number(minute)
  return minutes < DAY_MINUTES ? (sign === '-' ? -minutes : minutes) : undefined
}

function momentOf({ year, month, day, hour, minute, second, ms, zone }: Parts): number | undefined {
  const east = minutesEast(zone)
  // A minute may have a leap second.
  if (east === undefined || hour > 23 || minute > 59 || second > 60) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // 30 February is 2 March to Date, and a mistake here.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  return date.getTime() + ((hour * 60 + minute - east) * 60 + second) * 1_000 + ms
}

/** Milliseconds since 1970, or undefined when it is no date. White space around it does not matter. */
export function dateMs(text: string): number | undefined {
  const date = text.trim()
  if (date.length > DATE_CHARS_MAX) return undefined
  const iso = w3c.exec(date)
  if (iso !== null) {
    const [, year, month = '1', day = '1', hour = '0', minute = '0', second = '0', fraction = '0', zone = 'Z'] = iso
    return momentOf({
      year: Number(year), month: Number(month), day: Number(day), hour: Number(hour), minute: Number(minute),
      second: Number(second), ms: Math.trunc(Number(`0.${fraction}`) * 1_000), zone,
    })
  }
  const [, day, name = '', year = '', hour, minute, second = '0', zone = ''] = rfc822.exec(date) ?? []
  if (day === undefined) return undefined
  return momentOf({
    year: fullYear(year), month: months.indexOf(name.slice(0, 3).toLowerCase()) + 1, day: Number(day), hour: Number(hour),
    minute: Number(minute), second: Number(second), ms: 0, zone,
  })
}

/** RFC 2822 section 4.3: 49 is 2049, 50 is 1950. */
function fullYear(digits: string): number {
  const year = Number(digits)
  return digits.length === 4 ? year : year + (year < 50 ? 2000 : 1900)
}
