/** Main module of one run's process: which run comes as JSON in the first argument, its result goes to the parent. */
import { runScenario, type RunOrder } from './run.ts'
import { scenarios } from './scenarios.ts'

const { name, ...order } = JSON.parse(process.argv[2]!) as RunOrder & { readonly name: string }
const result = await runScenario(scenarios.find((scenario) => scenario.name === name)!, order)
process.send!(result, () => process.disconnect())
