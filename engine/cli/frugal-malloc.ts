/**
 * Settings for a process that is to keep to a budget of memory. They must be in its environment when it starts, and mean
 * something to glibc alone. Pure data.
 *
 * Left to itself glibc keeps what was freed: an arena for each thread, and pieces of up to 32 MB once such a large one was
 * freed (mallopt(3), M_MMAP_THRESHOLD). Measured (`bench:pressure --only memory`): after 20 seconds of 2 MB pages under
 * 256 MB the process stayed at its budget and the crawl at a quarter of its speed for good; with these it was back at
 * full speed in 3 seconds. What is freed goes back to the system then, and costs page faults when it is needed again; so
 * only whoever gives a budget gets them.
 */
export const frugalMalloc: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '65536', MALLOC_TRIM_THRESHOLD_: '131072',
}
