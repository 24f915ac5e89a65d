// Guards one child process: whatever ends the process that started the keeper, even `kill -9`, also ends the
// child, in good order. Node built-ins only, so that it is up in some 40 ms.
//
//   node keeper.mjs '{"command","args","cwd","uid","gid","stopSignal","killAfterMs"}'
//
// The environment is handed on and not written in the arguments, which every user of the machine can read.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

const SPAWN_FAILED = 127
const { command, args, cwd, uid, gid, stopSignal, killAfterMs } = JSON.parse(process.argv[2])

// Output goes straight to where the keeper's goes: with no pipe in between, nothing of it is lost, and the
// child does not die of a broken pipe before it has stopped cleanly.
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

// The end of standard input is the one sign of the parent's end that nothing can suppress.
process.stdin.resume()
process.stdin.once('end', stopChild)
process.stdin.once('error', stopChild)
process.on('SIGTERM', stopChild)
// Meant for the parent, which stops its children in its own order.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
// The channel only carries the child's pid; losing it says nothing.
process.on('disconnect', () => {})
process.channel?.unref()
