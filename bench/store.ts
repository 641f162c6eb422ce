/** placeholder */
import { fill, run, type Job } from './store/job.ts'
const job = JSON.parse(process.env['SLUICE_BENCH_JOB']!) as Job
console.log(JSON.stringify(await (job.kind === 'fill' ? fill(job) : run(job))))
