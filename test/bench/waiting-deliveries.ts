import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { ORGANISATION } from './organisation.ts'
import type { Stage } from './stage.ts'

const POLL_MS = 500
const BODY_BYTES = 1_024

type Backlog = { webhookId: string; count: number }

/**
 * Deliveries that wait two hours for their eighth attempt, with events of 1 KB: their rows only, which are not swept
 * until then.
 */
export async function writeWaitingRows(dataSource: DataSource, backlog: Backlog): Promise<string[]> {
  const ids = await writeBacklog(dataSource, {
    ...backlog,
    organisationId: ORGANISATION.id,
    state: 'waiting',
  })
  await dataSource.query(
    `UPDATE event e SET body = convert_to(replace(convert_from(body, 'UTF8'), 'cus_1', repeat('c', $2)), 'UTF8')
       FROM delivery d WHERE d.event_id = e.id AND d.id = ANY($1::uuid[])`,
    [ids, BODY_BYTES],
  )
  return ids
}

/**
 * Deliveries that wait two hours for their eighth attempt, each with its workflow, without the hours that getting there
 * takes: Posthorn's own sweeper finds the orphaned rows and starts the workflows at that attempt.
 */
export async function writeWaiting(
  { dataSource, engine }: Pick<Stage, 'dataSource' | 'engine'>,
  { webhookId, count }: Backlog,
  say: (line: string) => void,
): Promise<void> {
  await writeWaitingRows(dataSource, { webhookId, count })
  await dataSource.query(`UPDATE delivery SET sweep_at = now() WHERE state = 'waiting'`)
  say(`workflows for ${count} waiting deliveries`)
  const connection = await Connection.connect({ address: engine.address })
  const { workflow } = new Client({ connection })
  const running = `ExecutionStatus = 'Running' AND WebhookId = '${webhookId}'`
  while ((await workflow.count(running)).count < count) await delay(POLL_MS)
  await connection.close()
  await dataSource.query(`UPDATE delivery SET sweep_at = next_attempt_at WHERE state = 'waiting'`)
}

/** Deliveries whose fifth attempt was due a minute ago, and that have no workflow; they are not swept yet. */
export async function writeOverdue(dataSource: DataSource, backlog: Backlog): Promise<string[]> {
  const ids = await writeWaitingRows(dataSource, backlog)
  await dataSource.query(
    `UPDATE delivery SET attempts = 4, next_attempt_at = now() - interval '1 minute', sweep_at = now() + interval '1 hour'
      WHERE id = ANY($1::uuid[])`,
    [ids],
  )
  return ids
}
