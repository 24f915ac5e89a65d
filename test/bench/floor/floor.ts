import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { startHarnessProcess } from '../harness/harness-process.ts'
import { loadOn, type Load } from '../load.ts'
import { cpuOfProcess } from '../measure/processes.ts'
import { statesSettled } from '../measure/states-settled.ts'
import type { Rig } from '../rig.ts'

export type FloorRequest = { databaseUrl: string; hookUrl: string }

/** Published to and measured like Posthorn. */
export type Floor = Load & { close(): Promise<void> }

/** Starts the smallest program that does the same on this machine, with a database of its own. */
export async function openFloor(rig: Rig, path: string): Promise<Floor> {
  const stack = rig.openStack()
  const databaseUrl = await rig.createDatabase()
  const dataSource = createDataSource({ url: databaseUrl, poolSize: 1 })
  await dataSource.initialize()
  stack.push('the database', () => dataSource.destroy())
  const child = startHarnessProcess<FloorRequest>(new URL('./floor-main.ts', import.meta.url))
  stack.push('the floor', () => child.stop())
  const apiUrl = await child.ask<string>({ databaseUrl, hookUrl: `${rig.receiver.url}${path}` })
  return {
    ...loadOn(rig, [apiUrl]),
    settled: () => statesSettled(dataSource),
    cpu: () => ({ floor: cpuOfProcess(child.pid), postgres: rig.postgresCpu() }),
    close: () => stack.close(),
  }
}
