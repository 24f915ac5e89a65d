import { DefaultLogger, Runtime } from '@temporalio/worker'

let installed = false

/** The engine's core says nothing but errors during tests. It can be told only once per process. */
export function quietRuntime(): void {
  if (installed) return
  installed = true
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  })
}
