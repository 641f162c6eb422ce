/**
 * The bad afternoons. Times are of the full size; each claim holds for every seed. Unless a scenario says otherwise there
 * are 200 hosts with a delay of one second and answers after 100 ms, so 200 pages a second.
 */
import type { Scenario } from './scenario.ts'
import { faultSpan, rate } from './verdicts.ts'

const ownMbUsual = 300

export const scenarios: readonly Scenario[] = [
  {
    name: 'slow-parser', story: 'the parser becomes ten times slower',
    concerned: 'all', afterS: 20,
    faults: [{
      name: 'slow', seconds: 30,
      begin: ({ setParser }) => setParser({ pageMs: 20 }),
      end: ({ setParser }) => setParser({ pageMs: 0 }),
    }],
    claims: { blockedOn: ['page_ring'], recovery: { of: 'all', withinS: 10 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'large-pages', story: 'five sites turn to pages of 2 MB, of which all is read',
    concerned: 5, afterS: 20, concernedDelayMs: 250, options: { maxBodyBytes: 4 * 1_048_576 },
    web: { firstHostPages: 400, pagesPerHost: 400 },
    faults: [{
      name: 'large', seconds: 30,
      begin: ({ behave, concerned }) => behave(concerned, { pageBytes: 2 * 1_048_576 }),
      end: ({ behave, concerned }) => behave(concerned, {}),
    }],
    claims: { othersShareMin: 0.95, recovery: { of: 'all', withinS: 10 }, ownMbMax: 400 },
  },
  {
    name: 'store-stall', story: 'the store cannot be written for ten seconds',
    concerned: 'all', afterS: 20,
    faults: [{ name: 'stalled', seconds: 10, begin: ({ stallStore }, forMs) => stallStore(forMs) }],
    claims: { blockedOn: ['commit'], recovery: { of: 'all', withinS: 5 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'full-disk', story: 'the disk is full for ten seconds',
    concerned: 'all', afterS: 20, needs: ['smallDisk'],
    faults: [{
      name: 'full', seconds: 10,
      begin: ({ fillDisk }) => fillDisk(true),
      end: ({ fillDisk }) => fillDisk(false),
    }],
    claims: { blockedOn: ['disk'], recovery: { of: 'all', withinS: 5 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'consumer-stops', story: 'the consumer takes no page for ten seconds',
    concerned: 'all', afterS: 20, needs: ['consumer'],
    faults: [{
      name: 'stopped', seconds: 10,
      begin: ({ holdConsumer }) => holdConsumer(true),
      end: ({ holdConsumer }) => holdConsumer(false),
    }],
    claims: { blockedOn: ['consumer'], recovery: { of: 'all', withinS: 5 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'ceiling', story: 'a host answers 429 above 3 requests at once, then above 8',
    concerned: 1, concernedDelayMs: 0, afterS: 10, web: { firstHostPages: 12_000 },
    faults: [
      { name: 'above 3', seconds: 60, begin: ({ behave, concerned }) => behave(concerned, { concurrentMax: 3, latencyMs: 100 }) },
      {
        name: 'above 8', seconds: 60,
        begin: ({ behave, concerned }) => behave(concerned, { concurrentMax: 8, latencyMs: 100 }),
        end: ({ behave, concerned }) => behave(concerned, { latencyMs: 100 }),
      },
    ],
    claims: { othersShareMin: 0.95, ceilings: { 'above 3': 3, 'above 8': 8 }, ownMbMax: ownMbUsual },
    contrast: { label: 'concurrency 32:32:32', options: { concurrency: '32:32:32' } },
  },
  {
    name: 'rising-latency', story: 'a host takes 50 ms longer for each request that it has already',
    concerned: 1, concernedDelayMs: 0, afterS: 10, web: { firstHostPages: 12_000 },
    faults: [{
      name: 'rising', seconds: 40,
      begin: ({ behave, concerned }) => behave(concerned, { latencyMsPerRequest: 50 }),
      end: ({ behave, concerned }) => behave(concerned, {}),
    }],
    claims: { othersShareMin: 0.95, limitMax: 16, ownMbMax: ownMbUsual },
    contrast: { label: 'concurrency 32:32:32', options: { concurrency: '32:32:32' } },
  },
  {
    name: 'host-down', story: 'five hosts are down for a minute and come back',
    concerned: 5, concernedDelayMs: 100, afterS: 90, web: { pagesPerHost: 1_500, firstHostPages: 1_500 },
    faults: [{
      name: 'down', seconds: 60,
      begin: ({ behave, concerned }) => behave(concerned, { connections: 'refused' }),
      end: ({ behave, concerned }) => behave(concerned, {}),
    }],
    claims: { othersShareMin: 0.95, recovery: { of: 'concerned', withinS: 60 }, ownMbMax: ownMbUsual },
    contrast: { label: '--host-patience 0', options: { hostPatienceMs: 0 } },
  },
  {
    name: 'network-away', story: 'the whole network is away for a minute',
    concerned: 'all', afterS: 60, options: { timeoutMs: 5_000 },
    faults: [{
      name: 'away', seconds: 60,
      begin: ({ cutNetwork }) => cutNetwork(true),
      end: ({ cutNetwork }) => cutNetwork(false),
    }],
    claims: { blockedOn: ['network_down'], recovery: { of: 'all', withinS: 30 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'third-fails', story: 'three hosts of ten fail: silent, with status 503, or by resets',
    concerned: { share: 0.3 }, afterS: 10,
    faults: [{
      name: 'failing', seconds: 60,
      begin: async ({ behave, concerned }) => {
        await behave(concerned.filter((_, at) => at % 3 === 0), { connections: 'silent' })
        await behave(concerned.filter((_, at) => at % 3 === 1), { status: 503 })
        await behave(concerned.filter((_, at) => at % 3 === 2), { connections: 'reset' })
      },
      end: ({ behave, concerned }) => behave(concerned, {}),
    }],
    // A failed URL spends its tries on a host that fails for every one: those are its own fault as far as anybody can see.
    claims: { othersShareMin: 0.95, retryShareMax: 0.12, notOkMax: Number.POSITIVE_INFINITY, ownMbMax: ownMbUsual },
  },
  {
    name: 'challenge', story: 'three hosts of ten turn to challenge pages',
    concerned: { share: 0.3 }, afterS: 60,
    faults: [{
      name: 'challenging', seconds: 30,
      begin: ({ behave, concerned }) => behave(concerned, { challenge: true }),
      end: ({ behave, concerned }) => behave(concerned, {}),
    }],
    claims: { othersShareMin: 0.95, recovery: { of: 'concerned', withinS: 50 }, ownMbMax: ownMbUsual },
    contrast: { label: '--host-patience 0', options: { hostPatienceMs: 0 } },
  },
  {
    name: 'worker-deaths', story: 'a parse worker dies every second',
    concerned: 'all', afterS: 15,
    faults: [{
      name: 'dying', seconds: 30,
      begin: ({ setParser }) => setParser({ deathEveryMs: 1_000 }),
      end: ({ setParser }) => setParser({ deathEveryMs: 0 }),
    }],
    claims: {
      recovery: { of: 'all', withinS: 5 }, ownMbMax: 400,
      more: ({ workersLost, steps }) => {
        const seconds = steps.filter(({ kind }) => kind === 'fault').reduce((sum, { fromMs, toMs }) => sum + (toMs - fromMs) / 1_000, 0)
        return [{ name: 'deaths', isKept: workersLost >= 0.6 * seconds, text: `${workersLost} workers died in ${seconds.toFixed(0)} s` }]
      },
    },
  },
  {
    name: 'gateway-ceiling', story: 'a gateway answers 429 above 10 requests at once',
    concerned: 'all', afterS: 15, needs: ['gateway'],
    faults: [{
      name: 'above 10', seconds: 60,
      begin: ({ setGateway }) => setGateway({ concurrentMax: 10 }),
      end: ({ setGateway }) => setGateway({}),
    }],
    claims: { blockedOn: ['gateway'], ceilings: { 'above 10': 10 }, ownMbMax: ownMbUsual },
    contrast: { label: 'a gateway limit of 64:64:64', gatewayConcurrency: '64:64:64' },
  },
  {
    name: 'gateway-quota', story: "a gateway's quota is spent for twenty seconds",
    concerned: 'all', afterS: 15, needs: ['gateway'],
    faults: [{ name: 'spent', seconds: 20, begin: ({ setGateway }, forMs) => setGateway({ quotaResetsInMs: forMs }) }],
    claims: { blockedOn: ['gateway'], recovery: { of: 'all', withinS: 10 }, ownMbMax: ownMbUsual },
  },
  {
    name: 'million', story: 'one host with a million URLs, and a thousand with ten',
    concerned: 1, concernedDelayMs: 10, delayMs: 3_000, beforeS: 2, afterS: 2,
    web: { hosts: 1_001, pagesPerHost: 10, firstHostPages: 1_000_000 },
    faults: [{ name: 'crowd', seconds: 45, begin: () => undefined }],
    claims: {
      ownMbMax: 400,
      more: ({ othersWithoutRecord, samples, steps }) => {
        const pace = rate(samples, 'concerned', faultSpan(steps))
        return [
          { name: 'small hosts', isKept: othersWithoutRecord === 0, text: `${othersWithoutRecord} pages of the small hosts are left` },
          { name: 'large host', isKept: pace >= 80, text: `the large host goes on at ${pace.toFixed(0)} pages/s, its delay allows 100` },
        ]
      },
    },
  },
  {
    name: 'memory', story: 'a memory budget of 256 MB, as 200 pages a second turn to 2 MB and up to 2,000 could be under way',
    concerned: 'all', delayMs: 2_000, warmS: 10, beforeS: 10, afterS: 40, web: { hosts: 400, latencyMs: 1_000 },
    options: { memoryBytes: '256MB', connections: 2_000, concurrency: '8:1:32', maxBodyBytes: 4 * 1_048_576, timeoutMs: 60_000 },
    faults: [{
      name: 'large', seconds: 40,
      begin: ({ behave, allHosts }) => behave(allHosts, { pageBytes: 2 * 1_048_576 }),
      end: ({ behave, allHosts }) => behave(allHosts, {}),
    }],
    contrast: { label: '--memory none', options: { memoryBytes: Number.POSITIVE_INFINITY } },
    claims: {
      ownMbMax: 256, recovery: { of: 'all', withinS: 20 },
      more: ({ samples }) => {
        const most = Math.max(...samples.map(({ inFlight }) => inFlight))
        return [{ name: 'in flight', isKept: true, text: `${most} requests at once` }]
      },
    },
  },
]
