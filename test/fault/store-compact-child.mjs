/** Compacts the store of a directory, and dies at a step: argv [dir, step]. Against the built package. */
import { compactStore } from '../../dist/storage/lmdb/compact.js'

const [, , dir, lastStep] = process.argv
await compactStore(dir, (step) => {
  if (step === lastStep) process.kill(process.pid, 'SIGKILL')
})
