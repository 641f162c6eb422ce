/**
 * A run as a picture: throughput, queue ages and the limit over time, the faults shaded. SVG by hand, with colours that
 * follow the reader's light or dark scheme. Pure functions.
 */
import type { Evidence, Sample, Scenario, Step } from './scenario.ts'
import { pagesOf } from './verdicts.ts'

interface Series {
  readonly name: string
  readonly points: readonly (readonly [atMs: number, value: number])[]
}

interface Panel {
  readonly title: string
  readonly series: readonly Series[]
}

const [width, panelHeight, left, right, top, gap] = [760, 120, 52, 14, 46, 40] as const
/** As many lines in one panel can be told apart. */
const colours = 4
const plotWidth = width - left - right

const style = `
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 14px } .back { fill: #ffffff } .grid { stroke: #d8dee4 } .fault { fill: #fff1c9 }
  .line { fill: none; stroke-width: 1.6 } .c0 { stroke: #0969da } .c1 { stroke: #cf222e } .c2 { stroke: #1a7f37 } .c3 { stroke: #8250df }
  .n0 { fill: #0969da } .n1 { fill: #cf222e } .n2 { fill: #1a7f37 } .n3 { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .back { fill: #0d1117 } .grid { stroke: #30363d } .fault { fill: #3b2e0a }
    .c0 { stroke: #58a6ff } .c1 { stroke: #ff7b72 } .c2 { stroke: #3fb950 } .c3 { stroke: #bc8cff }
    .n0 { fill: #58a6ff } .n1 { fill: #ff7b72 } .n2 { fill: #3fb950 } .n3 { fill: #bc8cff }
  }`

export function chartOf({ name, story, contrast }: Scenario, isContrast: boolean, { samples, steps }: Evidence): string {
  const panels = panelsOf(samples)
  const endMs = samples.at(-1)?.atMs ?? 1
  const height = top + panels.length * (panelHeight + gap)
  const title = `${name}: ${story}${isContrast ? `, with ${contrast!.label}` : ''}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">\n<style>${style}\n</style>\n`
    + `<rect class="back" width="${width}" height="${height}"/>\n<text class="title" x="${left}" y="20">${escape(title)}</text>\n`
    + panels.map((panel, at) => panelSvg(panel, { y: top + at * (panelHeight + gap), endMs, steps })).join('')
    + '</svg>\n'
}

function panelsOf(samples: readonly Sample[]): readonly Panel[] {
  const peakOf = (stage: string): number => Math.max(...samples.map(({ ages }) => ages[stage] ?? 0))
  const ages = Object.keys(samples[0]?.ages ?? {}).sort((a, b) => peakOf(b) - peakOf(a)).slice(0, colours)
  const seriesOf = (name: string, valueOf: (sample: Sample) => number): Series => ({ name, points: samples.map((sample) => [sample.atMs, valueOf(sample)]) })
  const panels: readonly Panel[] = [
    { title: 'pages/s', series: [{ name: 'hosts not concerned', points: rates(samples, 'others') }, { name: 'hosts concerned', points: rates(samples, 'concerned') }] },
    { title: 'requests at once', series: [seriesOf('limit of the host concerned', ({ limit }) => limit), seriesOf('at the server, peak', ({ tally }) => tally.inFlightPeak)] },
    { title: 'age of the oldest, ms', series: ages.map((stage) => seriesOf(stage, ({ ages }) => ages[stage] ?? 0)) },
  ]
  return panels.map(({ title, series }) => ({ title, series: series.filter(({ points }) => points.some(([, value]) => value > 0)) }))
}

/** Over the second before each sample. */
function rates(samples: readonly Sample[], group: 'concerned' | 'others'): readonly (readonly [number, number])[] {
  let from = 0
  return samples.map((sample) => {
    while (samples[from]!.atMs < sample.atMs - 1_000) from += 1
    const first = samples[from]!
    const seconds = (sample.atMs - first.atMs) / 1_000
    return [sample.atMs, seconds === 0 ? 0 : (pagesOf(sample, group) - pagesOf(first, group)) / seconds]
  })
}

function panelSvg({ title, series }: Panel, { y, endMs, steps }: { y: number; endMs: number; steps: readonly Step[] }): string {
  const valueMax = niceMax(Math.max(0, ...series.flatMap(({ points }) => points.map(([, value]) => value))))
  const [xOf, yOf] = [(atMs: number) => left + plotWidth * atMs / endMs, (value: number) => y + panelHeight * (1 - value / valueMax)]
  let svg = ''
  for (const { kind, name, fromMs, toMs } of steps) {
    if (kind !== 'fault') continue
    svg += `<rect class="fault" x="${round(xOf(fromMs))}" y="${y}" width="${round(xOf(toMs) - xOf(fromMs))}" height="${panelHeight}"/>`
      + `<text x="${round(xOf(fromMs) + 4)}" y="${y + 14}">${escape(name)}</text>\n`
  }
  for (const value of [0, valueMax / 2, valueMax]) {
    svg += `<line class="grid" x1="${left}" x2="${left + plotWidth}" y1="${round(yOf(value))}" y2="${round(yOf(value))}"/>`
      + `<text x="${left - 6}" y="${round(yOf(value) + 4)}" text-anchor="end">${value}</text>\n`
  }
  for (const [at, { points }] of series.entries()) {
    svg += `<polyline class="line c${at % colours}" points="${points.map(([atMs, value]) => `${round(xOf(atMs))},${round(yOf(value))}`).join(' ')}"/>\n`
  }
  const legend = series.map(({ name }, at) => `<tspan class="n${at % colours}" dx="14">${escape(name)}</tspan>`).join('')
  return `${svg}<text x="${left}" y="${y - 6}">${escape(title)}${legend}</text>\n`
    + `<text x="${left + plotWidth}" y="${y + panelHeight + 16}" text-anchor="end">${Math.round(endMs / 1_000)} s</text>\n`
}

/** The next of 1, 2, 4 or 10 times a power of ten, at least 4. */
function niceMax(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(4, value)))
  return [1, 2, 4, 10].map((step) => step * power).find((max) => max >= Math.max(4, value))!
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
