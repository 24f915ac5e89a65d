import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A part of the harness in a process of its own, so that its processor time is measured separately. */
export type HarnessProcess<Request> = {
  pid: number
  ask<Answer>(request: Request): Promise<Answer>
  stop(): Promise<void>
}

type Reply = { id: number; answer: unknown } | { id: number; error: string }

/** Starts a file of this folder that calls `serveHarness`. It ends with this process, however that happens. */
export function startHarnessProcess<Request>(file: URL): HarnessProcess<Request> {
  const child = fork(fileURLToPath(file), {
    execArgv: ['--import', 'tsx'],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>()
  let lastId = 0
  child.on('message', (reply: Reply) => {
    const asked = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('error' in reply) asked?.reject(new Error(reply.error))
    else asked?.resolve(reply.answer)
  })
  const exited = once(child, 'exit')
  void exited.then(() => {
    for (const { reject } of waiting.values()) reject(new Error(`${file.pathname} has ended`))
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${file.pathname} did not start`)
  return {
    pid,
    ask<Answer>(request: Request) {
      lastId += 1
      const id = lastId
      return new Promise<Answer>((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject })
        child.send({ id, request })
      })
    },
    async stop() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** The other end: answers requests until the parent is gone. Messages that come before it is called are kept. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- names what the other end sends
export function serveHarness<Request>(handle: (request: Request) => Promise<unknown>): void {
  process.on('message', ({ id, request }: { id: number; request: Request }) => {
    handle(request).then(
      (answer) => process.send?.({ id, answer }),
      (error: unknown) =>
        process.send?.({ id, error: error instanceof Error ? error.message : String(error) }),
    )
  })
  process.on('disconnect', () => process.exit())
  // Ctrl-C reaches every process of the terminal; the parent stops its parts in its own order.
  process.on('SIGINT', () => undefined)
}
