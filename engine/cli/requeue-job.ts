/**
 * A requeue that takes longer than an answer over the control socket may: it is begun by one request, and followed by
 * others until it is done. Each is answered at the latest after `answerMs`, which is less than the asker waits. Runs in
 * the engine's process.
 */
import type { RequeueResult } from '../core/api-types.ts'
import { limits } from '../core/limits.ts'

export interface RequeueState extends RequeueResult {
  readonly isDone: boolean
}

const answerMs = limits.controlAnswerMsMax / 4

export class RequeueJob {
  #soFar: RequeueResult = { requeued: 0, excluded: 0 }
  #isDone = false
  readonly #result: Promise<void>

  constructor(requeue: (onProgress: (soFar: RequeueResult) => void) => Promise<RequeueResult>) {
    this.#result = this.#run(requeue)
    this.#result.catch(() => {
      // Whoever follows it is told, and perhaps nobody does.
    })
  }

  get isDone(): boolean {
    return this.#isDone
  }

  /** Resolves when it is done, or when the asker must hear something. Rejects with what it failed of. */
  async state(): Promise<RequeueState> {
    let timer: NodeJS.Timeout | undefined
    try {
      await Promise.race([this.#result, new Promise((resolve) => { timer = setTimeout(resolve, answerMs) })])
    } finally {
      clearTimeout(timer)
    }
    return { ...this.#soFar, isDone: this.#isDone }
  }

  async #run(requeue: ConstructorParameters<typeof RequeueJob>[0]): Promise<void> {
    try {
      this.#soFar = await requeue((soFar) => { this.#soFar = soFar })
    } finally {
      this.#isDone = true
    }
  }
}
