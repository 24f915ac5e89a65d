import { COMMANDS } from './command-line/commands.ts'
import { runProgram } from './command-line/run-program.ts'

await runProgram(COMMANDS, process.argv.slice(2))
