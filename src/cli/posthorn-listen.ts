#!/usr/bin/env node
import { LISTEN_COMMAND } from './command-line/listen-command.ts'
import { runProgram } from './command-line/run-program.ts'

/** `posthorn listen` as a program of its own, for receivers: it needs none of the packages of the server. */
const argv = process.argv.slice(2)
const isAboutProgram = argv[0] === '--version' || argv[0] === '-v'
await runProgram([LISTEN_COMMAND], isAboutProgram ? argv : ['listen', ...argv], (text) =>
  text.replaceAll('posthorn listen', 'posthorn-listen'),
)
