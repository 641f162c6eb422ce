// Opens a store for reading and checks it; says what was found, or with which code it could not be. Runs the compiled store.
import { openStore } from '../../dist/storage/lmdb/lmdb-store.js'

// lmdb-js prints what it throws.
console.error = () => {}
try {
  const store = await openStore(process.argv[2], { readOnly: true })
  const { mended, problems } = await store.check()
  process.stdout.write(mended.length + problems.length === 0 ? 'sound' : 'problems')
} catch (error) {
  process.stdout.write(error.code ?? String(error))
}
