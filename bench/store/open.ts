/** The stores that are measured, by name. */
import type { Frontier } from './frontier.ts'
import { RedisFrontier } from './redis.ts'
import { SluiceFrontier } from './sluice.ts'
import { SqliteFrontier } from './sqlite.ts'

export type StoreName = 'sluice' | 'sqlite' | 'redis'

export async function openFrontier(name: StoreName, dir: string): Promise<Frontier> {
  if (name === 'sqlite') return SqliteFrontier.open(dir)
  return name === 'redis' ? RedisFrontier.open(dir) : SluiceFrontier.open(dir)
}
