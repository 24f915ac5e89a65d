import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import type { TestWorkflowEnvironment } from '@temporalio/testing'

const folder = fileURLToPath(new URL('../../workflows/histories/', import.meta.url))

/** Keeps a workflow's history for `test/workflows/replay.test.ts`, unless there is one of that name. */
export async function saveHistory(
  temporal: TestWorkflowEnvironment,
  name: string,
  workflowId: string,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  // What a release made stays what it is: rename the old file to have a new one next to it.
  if (existsSync(`${folder}${name}.json`)) return
  const history = await temporal.client.workflow.getHandle(workflowId).fetchHistory()
  // The identity of the process is irrelevant.
  const text = historyToJSON(history).replaceAll(/"identity": *"[^"]*"/g, '"identity": "worker"')
  writeFileSync(`${folder}${name}.json`, `${text}\n`)
}
