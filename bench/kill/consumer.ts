/**
 * A program with the library in it, to be killed: crawls a directory and takes each page, which acknowledges the one
 * before. It writes down what it was handed and what it has finished with, before it asks for more; these lines are in
 * the file when the next page is asked for, so what the crawl stores beyond them was never acknowledged.
 *
 *     node consumer.js '{"crawl": {...}, "seeds": [...], "log": FILE}'
 */
import fs from 'node:fs'
import { Crawler, type CrawlOptionsGiven } from '../../engine/index.ts'

interface Task {
  readonly crawl: CrawlOptionsGiven
  readonly seeds: readonly string[]
  readonly log: string
}

const task = JSON.parse(process.argv[2]!) as Task
const log = fs.openSync(task.log, 'a')
const crawler = await Crawler.open(task.crawl)
let isStopping = false
process.on('SIGINT', () => {
  isStopping = true
  void crawler.stop()
})
await crawler.add(task.seeds)
if (!isStopping) {
  for await (const { url } of crawler.run()) fs.writeSync(log, `${url}\n`)
}
await crawler.close()
process.exit(isStopping ? 3 : 0)
