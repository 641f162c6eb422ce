import http from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { spawnDemoWeb, type SpawnedDemoWeb } from '../../engine/demo/index.ts'

let web: SpawnedDemoWeb

async function open(options: { latencyMs?: number } = {}): Promise<readonly string[]> {
  web = await spawnDemoWeb({ hosts: 10, pagesPerHost: 3, firstHostPages: 40, seed: 5, sizeScale: 0.01, ...options })
  return [...web.resolve.keys()]
}

afterEach(() => web.close())

/** Status, headers and length of an answer, or the code of the error. */
function ask(host: string, path = '/'): Promise<{ status?: number, headers?: http.IncomingHttpHeaders, bytes?: number, error?: string }> {
  return new Promise((resolve) => {
    const request = http.get({ host: web.resolve.get(host), port: web.port, path, headers: { host: `${host}:${web.port}` }, agent: false }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => { bytes += chunk.length })
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, bytes }))
    })
    request.on('error', (error: NodeJS.ErrnoException) => resolve({ error: error.code! }))
  })
}

function several(count: number, host: string): Promise<(number | undefined)[]> {
  return Promise.all(Array.from({ length: count }, async () => (await ask(host)).status))
}

it('a host refuses what goes beyond its ceiling, with Retry-After if wanted, and counts it exactly', async () => {
  const [host, other] = await open() as [string, string]
  await web.behave([host], { concurrentMax: 3, retryAfterS: 7, latencyMs: 150 })
  const answers = await several(8, host)
  expect([...answers].sort()).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
  expect(await several(8, other)).toEqual(Array.from({ length: 8 }, () => 200))
  const tallies = await web.takeTallies()
  expect(tallies.get(host)).toMatchObject({ requests: 8, refused: 5 })
  expect(tallies.get(host)!.inFlightPeak).toBeGreaterThan(3)
  expect(tallies.get(other)).toMatchObject({ requests: 8, refused: 0 })
  await expect.poll(async () => (await web.takeTallies()).get(host)).toEqual({ requests: 8, refused: 5, inFlight: 0, inFlightPeak: 0 })
  await web.behave([host], { concurrentMax: 0, retryAfterS: 7 })
  expect((await ask(host)).headers?.['retry-after']).toBe('7')
  await web.behave([host], {})
  expect(await ask(host)).toMatchObject({ status: 200 })
})

it('a host challenges, fails for a share of its requests, and sends pages of the size that was asked for', async () => {
  const [host] = await open() as [string]
  await web.behave([host], { challenge: true })
  expect(await ask(host)).toMatchObject({ status: 403, headers: { 'cf-mitigated': 'challenge' } })
  await web.behave([host], { status: 503, statusShare: 0.5 })
  const failed = (await several(60, host)).filter((status) => status === 503).length
  expect(failed).toBeGreaterThan(15)
  expect(failed).toBeLessThan(45)
  await web.behave([host], { pageBytes: 2 * 1_048_576 })
  const { status, bytes, headers } = await ask(host)
  expect({ status, coding: headers?.['content-encoding'] }).toEqual({ status: 200, coding: undefined })
  expect(bytes).toBeGreaterThan(1.9 * 1_048_576)
})

it('a host goes away and comes back: it refuses connections, resets them, or is silent', async () => {
  const [host, other] = await open() as [string, string]
  await web.behave([host], { connections: 'refused' })
  expect(await ask(host)).toEqual({ error: 'ECONNREFUSED' })
  expect(await ask(other)).toMatchObject({ status: 200 })
  await web.behave([host], { connections: 'reset' })
  expect(await ask(host)).toEqual({ error: 'ECONNRESET' })
  await web.behave([host], { connections: 'silent' })
  const silent = ask(host)
  await expect.poll(async () => (await web.takeTallies()).get(host)?.inFlight).toBe(1)
  // Whoever has no answer by then gets none: the connection ends with the listener.
  await web.behave([host], { connections: 'refused' })
  expect(await silent).toEqual({ error: 'ECONNRESET' })
  await web.behave([host], {})
  expect(await ask(host)).toMatchObject({ status: 200 })
  await expect.poll(async () => (await web.takeTallies()).get(host)?.inFlight).toBe(0)
})

it('one host may have many pages, and all others the same few', async () => {
  await open()
  expect(web.pages).toBe(40 + 9 * 3)
})
