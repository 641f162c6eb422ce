// Tries to own a directory and says so, then answers for its process id until it is killed. Runs the compiled lock.
import { acquireDir } from '../../dist/storage/control.js'

const [dir, waitMs] = process.argv.slice(2)
try {
  const lock = await acquireDir(dir, { waitMs: Number(waitMs) })
  lock.onRequest(() => ({ pid: process.pid }))
  process.stdout.write('owned\n')
} catch (error) {
  process.stdout.write(`${error.code}\n`)
}
