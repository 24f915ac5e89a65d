import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { firstErrors, type FieldError } from '../problem-error.ts'
import { createCostlyCompiler, type CheckPayload } from './schema-compiler.ts'

/** `schemas`: by event key; those that have one. */
export type ThreadData = { readonly schemas: ReadonlyMap<string, object> }

/** `json`: the text of an object whose member `data` is checked. */
export type ThreadRequest = { readonly eventKey: string; readonly json: string }

/**
 * `started`: the schema is compiled and the time of the payload runs. `checked`: it took `ms`; `errors` is null where
 * the schema calls itself without an end.
 */
export type ThreadReply = { kind: 'started' } | { kind: 'checked'; errors: FieldError[] | null; ms: number }

/** The program of a thread that checks payloads. It knows no limit: its process stops it. */
if (!isMainThread && parentPort !== null) serve(parentPort, workerData as ThreadData)

function serve(port: NonNullable<typeof parentPort>, { schemas }: ThreadData): void {
  const compile = createCostlyCompiler()
  const checks = new Map<string, CheckPayload>()
  const reply = (message: ThreadReply): void => port.postMessage(message)
  port.on('message', ({ eventKey, json }: ThreadRequest) => {
    const checkPayload = checks.get(eventKey) ?? compile(schemas.get(eventKey) ?? {})
    checks.set(eventKey, checkPayload)
    reply({ kind: 'started' })
    const startedAtMs = performance.now()
    const errors = check(checkPayload, json)
    reply({ kind: 'checked', errors, ms: performance.now() - startedAtMs })
  })
}

function check(checkPayload: CheckPayload, json: string): FieldError[] | null {
  try {
    const { data } = JSON.parse(json) as { data: unknown }
    return firstErrors(checkPayload(data))
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}
