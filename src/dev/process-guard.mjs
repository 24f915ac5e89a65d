// Runs one child process and stops it cleanly when the parent of the guard ends, even by `kill -9`. Imports Node
// built-ins only, so that it starts in some 40 ms.
//
//   node process-guard.mjs '{"command","args","cwd","uid","gid","stopSignal","killAfterMs"}'
//
// The child inherits the environment. It is not in the arguments, which every user of the machine can read.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

const SPAWN_FAILED = 127
const { command, args, cwd, uid, gid, stopSignal, killAfterMs } = JSON.parse(process.argv[2])

// The child inherits the guard's output: with no pipe in between nothing is lost, and no broken pipe ends the child
// before it has stopped cleanly.
const child = spawn(command, args, { cwd, uid, gid, stdio: ['ignore', 'inherit', 'inherit'] })

let isStopping = false
function stopChild() {
  if (isStopping) return
  isStopping = true
  child.kill(stopSignal)
  setTimeout(() => child.kill('SIGKILL'), killAfterMs)
}

child.once('spawn', () => process.send?.({ childPid: child.pid }))
child.once('error', (error) => {
  process.stderr.write(`cannot start ${command}: ${error.message}\n`)
  process.exit(SPAWN_FAILED)
})
child.once('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))

// Standard input ends with the parent, whatever ends the parent.
process.stdin.resume()
process.stdin.once('end', stopChild)
process.stdin.once('error', stopChild)
process.on('SIGTERM', stopChild)
// The parent handles these signals and stops its children in its own order.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
// The channel carries the child's pid only, so its end is ignored.
process.on('disconnect', () => {})
process.channel?.unref()
