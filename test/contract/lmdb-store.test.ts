import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { storeAgainContract } from './store-again.ts'
import { storeRedirectsContract } from './store-redirects.ts'
import { storeSitemapsContract } from './store-sitemaps.ts'
import { storeContract } from './store.ts'

storeContract('the LMDB store', openStore)
storeAgainContract('the store on LMDB', (dir) => openStore(dir))
storeRedirectsContract('the LMDB store', (dir) => openStore(dir))
storeSitemapsContract('sitemaps in the store on LMDB', (dir) => openStore(dir))
