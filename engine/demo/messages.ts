/**
 * What the process of a spawned demonstration web and its parent say to each other over the IPC channel. Types only.
 */
import type { ErrorCode } from '../core/errors.ts'
import type { Behaviour, HostTally } from './behaviours.ts'

export type ToParent =
  | { readonly type: 'ready', readonly seeds: readonly string[], readonly resolve: readonly (readonly [string, string])[], readonly caPem: string, readonly port: number, readonly pages: number }
  | { readonly type: 'failed', readonly code: ErrorCode, readonly message: string }
  | { readonly type: 'done' }
  | { readonly type: 'tallies', readonly tallies: readonly (readonly [string, HostTally])[] }

export type ToChild =
  | { readonly type: 'flush' }
  | { readonly type: 'edition', readonly edition: number }
  | { readonly type: 'behave', readonly hosts: readonly string[], readonly behaviour: Behaviour }
  | { readonly type: 'takeTallies' }
  | { readonly type: 'close' }
