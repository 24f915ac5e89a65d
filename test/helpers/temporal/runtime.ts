import { DefaultLogger, Runtime } from '@temporalio/worker'

let installed = false

/** Temporal's core logs nothing but errors during tests. It can be configured only once per process. */
export function quietRuntime(): void {
  if (installed) return
  installed = true
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    workerHeartbeatInterval: '1 second',
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  })
}
