/**
 * Main module of the process in which a crawl directory is checked or compacted: reading a damaged store may end the
 * process. It is told once what to do, answers once, and ends; at once when its parent is gone.
 */
import { sluiceErrorOf, type SluiceError } from '../core/errors.ts'
import { compactCrawl, checkCrawlDir } from './care-tasks.ts'
import { watchParent } from './lifeline.ts'

export type CareTask = { readonly task: 'check' | 'compact'; readonly dir: string }
export type CareAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly code: SluiceError['code']; readonly message: string }

async function answerTo({ task, dir }: CareTask): Promise<CareAnswer> {
  try {
    return { ok: true, result: await (task === 'check' ? checkCrawlDir(dir) : compactCrawl(dir)) }
  } catch (error) {
    const { code, message } = sluiceErrorOf(error)
    return { ok: false, code, message }
  }
}

watchParent()
process.once('message', (task: CareTask) => {
  void answerTo(task).then((answer) => process.send!(answer, () => process.exit(0)))
})
