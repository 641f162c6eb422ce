/** `sluice compact`: gives the disk space back that was freed inside the store of a crawl that is not running. */
import type { Compacted } from '../../storage/lmdb/compact.ts'
import { writeOut } from './batch.ts'
import { inOwnProcess } from './care-process.ts'
import { shortSize } from './human.ts'
import { checkCrawl, refuseRunning } from './owner.ts'

/** Resolves to the exit code. Throws as `openStore`, and `disk_failed` when there is no room for the copy. */
export async function runCompact({ dir, json }: { readonly dir: string; readonly json: boolean }): Promise<number> {
  checkCrawl(dir)
  await refuseRunning(dir)
  const compacted = await inOwnProcess<Compacted>({ task: 'compact', dir })
  const { bytesBefore, bytesAfter } = compacted
  await writeOut(json ? `${JSON.stringify(compacted)}\n` : `compacted the store: ${shortSize(bytesBefore)} before, ${shortSize(bytesAfter)} now\n`)
  return 0
}
