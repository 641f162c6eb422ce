/**
 * Many fetches under one abort signal, with one listener. Node's EventTarget looks through all of its listeners at each
 * that is added or removed: with 7,000 fetches under the signal of their run that is work for each fetch that grows with
 * all others. A signal that is forgotten takes its fetches with it. Main thread.
 */

const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls back when the signal aborts; answers a function that forgets it. A signal that has aborted already calls nobody. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = callbacksOf.get(signal)
  if (callbacks === undefined) {
    const all = callbacks = new Set<() => void>()
    callbacksOf.set(signal, all)
    signal.addEventListener('abort', () => { for (const each of all) each() }, { once: true })
  }
  callbacks.add(callback)
  const own = callbacks
  return () => void own.delete(callback)
}
