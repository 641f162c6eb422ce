/**
 * `--batch` of the inspecting commands: one JSON object of arguments a line on standard input, one answer a line on
 * standard output. A line that is wrong has an answer like the others, `{"error": ...}`, and the next one is read.
 */
import type { Readable } from 'node:stream'
import { safeText } from './lines.ts'

export type Answer = Readonly<Record<string, unknown>>

/** Answers every line; waits where the output is read slowly. */
export async function answerLines(input: Readable, write: (line: string) => Promise<void>, answer: (args: Answer) => Promise<Answer> | Answer): Promise<void> {
  for await (const line of linesOf(input)) {
    if (line.trim() !== '') await write(`${JSON.stringify(await answerOrError(line, answer))}\n`)
  }
}

/** An answer, or what is wrong with the question. */
export async function answerOrError(line: string, answer: (args: Answer) => Promise<Answer> | Answer): Promise<Answer> {
  try {
    const args: unknown = JSON.parse(line)
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return { error: 'expected a JSON object of arguments' }
    return await answer(args as Answer)
  } catch (error) {
    return { error: safeText((error as Error).message) }
  }
}

async function* linesOf(input: Readable): AsyncGenerator<string, void> {
  let rest: string[] = []
  const decoder = new TextDecoder()
  for await (const chunk of input as AsyncIterable<Uint8Array>) {
    // A line may hold a whole document in base64: its parts are joined once, when it is complete.
    const parts = decoder.decode(chunk, { stream: true }).split('\n')
    for (const part of parts.slice(0, -1)) {
      yield rest.join('') + part
      rest = []
    }
    rest.push(parts.at(-1)!)
  }
  yield rest.join('') + decoder.decode()
}

/** Writes to standard output and waits until there is room for more. */
export function writeOut(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error === null || error === undefined ? resolve() : reject(error)))
  })
}
