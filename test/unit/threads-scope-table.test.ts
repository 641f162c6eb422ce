import { describe, expect, it } from 'vitest'
import { hostHashOf } from '../../engine/core/url-key.ts'
import { ScopeTable } from '../../threads/scope-table.ts'

const names = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, index) => `${prefix}${index}.example`)

describe('ScopeTable', () => {
  it('finds what was added, through another view of its memory, and nothing else', () => {
    const table = ScopeTable.create(2_000)
    const view = ScopeTable.over(table.memory)
    for (const name of names(2_000, 'in')) table.add(name)
    expect(names(2_000, 'in').filter((name) => !view.has(hostHashOf(name)))).toEqual([])
    expect(names(2_000, 'out').filter((name) => view.has(hostHashOf(name)))).toEqual([])
  })

  it('takes no room for a name that it has', () => {
    const table = ScopeTable.create(10)
    for (let round = 0; round < 100; round += 1) for (const name of names(10, 'in')) table.add(name)
    expect(names(10, 'in').filter((name) => !table.has(hostHashOf(name)))).toEqual([])
    expect(table.has(hostHashOf('out.example'))).toBe(false)
  })

  it('says yes to everything once it is too full, and still ends every search', () => {
    const table = ScopeTable.create(10)
    for (const name of names(100, 'in')) table.add(name)
    expect(names(100, 'in').concat('out.example').filter((name) => !table.has(hostHashOf(name)))).toEqual([])
  })

  it('holds a hash whose high half is zero', () => {
    const table = ScopeTable.create(10)
    const hash = Uint8Array.of(1, 2, 3, 4, 0, 0, 0, 0)
    expect(table.has(hash)).toBe(false)
  })
})
