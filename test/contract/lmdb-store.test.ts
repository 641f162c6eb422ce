import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { storeContract } from './store.ts'

storeContract('the LMDB store', openStore)
