import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Makes metrics of one registry: no metric of ours is global. Every name begins with `posthorn_`. */
export type Define = ReturnType<typeof createDefine>

export function createDefine(registry: Registry) {
  const registers = [registry]
  return {
    counter: <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
      new Counter({ name: `posthorn_${name}`, help, labelNames, registers }),
    gauge: <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
      new Gauge({ name: `posthorn_${name}`, help, labelNames, registers }),
    /** `buckets` are upper bounds in seconds. */
    histogram: <Label extends string = never>(
      name: string,
      help: string,
      buckets: number[],
      labelNames: Label[] = [],
    ) => new Histogram({ name: `posthorn_${name}`, help, buckets, labelNames, registers }),
  }
}

/** From what is usual (milliseconds) to what an outage of Temporal causes. */
export const DELAY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900]

/** Returns seconds, never negative: clocks can be set back, and a falling sum would count as a restart. */
export function seconds(ms: number): number {
  return Math.max(0, ms) / 1_000
}
