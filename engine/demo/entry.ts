/**
 * Main module of a spawned demonstration web: options come as JSON in the first argument, everything else over the IPC
 * channel. The process ends when it is told to, on SIGTERM and SIGINT, or when its parent's channel closes; in each
 * case the log is written first.
 */
import { SluiceError } from '../core/errors.ts'
import type { ToChild, ToParent } from './messages.ts'
import type { DemoWebOptions } from './options.ts'
import { startDemoWeb, type DemoWeb } from './web.ts'

function tell(message: ToParent): void {
  // A parent that is gone is noticed by 'disconnect'.
  if (process.connected) process.send!(message, () => undefined)
}

function serve(web: DemoWeb): void {
  const end = (): void => void web.close().finally(() => process.exit(0))
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.on('disconnect', end)
  process.on('message', (message: ToChild) => {
    if (message.type === 'close') return end()
    if (message.type === 'takeTallies') return tell({ type: 'tallies', tallies: [...web.takeTallies()] })
    if (message.type === 'behave') return void web.behave(message.hosts, message.behaviour).then(() => tell({ type: 'done' }))
    if (message.type === 'edition') web.edition = message.edition
    else web.flush()
    tell({ type: 'done' })
  })
  tell({ type: 'ready', seeds: web.seeds, resolve: [...web.resolve], caPem: web.caPem, port: web.port, pages: web.pages })
  if (!process.connected) end()
}

try {
  serve(await startDemoWeb(JSON.parse(process.argv[2] ?? '{}') as DemoWebOptions))
} catch (error) {
  tell({ type: 'failed', code: error instanceof SluiceError ? error.code : 'internal', message: (error as Error).message })
  process.disconnect()
}
