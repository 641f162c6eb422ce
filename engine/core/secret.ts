/**
 * A text that must not be seen: a proxy's credentials, the key of an API. Whoever needs it calls `reveal`; JSON, string
 * conversion and `util.inspect` show a placeholder, so no log, record, error or snapshot can hold it by accident. Leaf module.
 */
import { inspect } from 'node:util'

const placeholder = '(secret)'

export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
    Object.freeze(this)
  }

  /** The text itself, for the wire. */
  reveal(): string {
    return this.#text
  }

  toJSON(): string {
    return placeholder
  }

  toString(): string {
    return placeholder
  }

  [inspect.custom](): string {
    return placeholder
  }
}
