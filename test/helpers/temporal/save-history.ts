import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import type { TestWorkflowEnvironment } from '@temporalio/testing'

const folder = fileURLToPath(new URL('../../workflows/histories/', import.meta.url))

/** Keeps a workflow's history for `test/workflows/replay.test.ts`, unless there is one of that name. */
export async function saveHistory(
  engine: TestWorkflowEnvironment,
  name: string,
  workflowId: string,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  // What a release made stays what it is: rename the old file to have a new one beside it.
  if (existsSync(`${folder}${name}.json`)) return
  const history = await engine.client.workflow.getHandle(workflowId).fetchHistory()
  // Which process it was says nothing to anybody else.
  const text = historyToJSON(history).replaceAll(/"identity": *"[^"]*"/g, '"identity": "worker"')
  writeFileSync(`${folder}${name}.json`, `${text}\n`)
}
