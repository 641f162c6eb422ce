/** The header fields of a request, as flat lists: name, value, name, value. Pure. */

/** The fields of a request, with those given in the place of ours that have the same name. `given`: names in lower case. */
export function withFields(ours: readonly string[], given: readonly string[]): readonly string[] {
  if (given.length === 0) return ours
  const names = new Set(given.filter((_, at) => at % 2 === 0))
  return [...ours.filter((_, at) => !names.has(ours[at - at % 2]!.toLowerCase())), ...given]
}
