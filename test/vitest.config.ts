import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // Processes, not threads: the engine itself starts worker threads and loads a native store.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 180_000,
    // Hooks run whole crawls, as tests do.
    hookTimeout: 180_000,
  },
})
