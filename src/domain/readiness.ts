/** The body of `/readyz`. `engine` is Temporal. `sweep` and `process` are there only when something is wrong. */
export type Readiness = {
  database: 'up' | 'down'
  engine: 'up' | 'down'
  sweep?: 'stalled'
  process?: 'stopping'
}

/** The state of the parts of a process. `isDatabaseUp`: it answers and takes events. */
type Parts = {
  isDatabaseUp: boolean
  isTemporalUp: boolean
  isSweepStalled: boolean
  isStopping: boolean
}

export function presentReadiness(parts: Parts): Readiness {
  return {
    database: parts.isDatabaseUp ? 'up' : 'down',
    engine: parts.isTemporalUp ? 'up' : 'down',
    ...(parts.isSweepStalled ? { sweep: 'stalled' } : {}),
    ...(parts.isStopping ? { process: 'stopping' } : {}),
  }
}

/** Returns whether a process can do its work: an API needs the database, a worker every part. */
export function isReady({ database, engine, sweep, process }: Readiness, role: 'api' | 'worker'): boolean {
  if (database === 'down' || process === 'stopping') return false
  return role === 'api' || (engine === 'up' && sweep === undefined)
}
