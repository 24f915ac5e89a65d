import { findReplay, listReplays } from '../../db/queries/replays.ts'
import { cancelReplayJob, countReplay, requestReplay } from '../../deliveries/retry/request-retry-job.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../problem-error.ts'
import { presentReplay, presentReplayCount } from '../presenters/presenter.ts'
import { param, typedRoute, type Route } from '../route.ts'
import {
  parseRange,
  rangeErrors,
  ReplayCountSchema,
  ReplayListSchema,
  ReplaySchema,
  RequestReplaySchema,
} from '../schemas/replay.ts'
import { webhookOfPath } from './webhooks.ts'

const REPLAYS = '/api/orgs/:orgId/webhooks/:id/replays'
/** For a hundred event keys. */
const MAX_BODY_BYTES = 16 * 1024

const THIS_REPLAY = { id: '$response.body#/webhookId', jobId: '$response.body#/id' }

const requestRoute = typedRoute({
  method: 'POST',
  path: REPLAYS,
  operationId: 'replayEvents',
  summary: 'Send past events to a webhook',
  description:
    'Needs the permissions of the event keys too. Background work: the answer is a job whose progress can be read. Each event is sent with the bytes of its envelope, as a new delivery with an id of its own, where the webhook is subscribed to it when it is sent. With `dryRun` nothing is sent, and the answer is a count.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: { schema: RequestReplaySchema, maxBytes: MAX_BODY_BYTES, rules: rangeErrors },
  idempotent: true,
  responses: {
    200: { description: 'What would be sent, with `dryRun`', schema: ReplayCountSchema },
    202: {
      description: 'The job',
      schema: ReplaySchema,
      headers: { Location: 'Path of the job' },
      links: { getReplay: THIS_REPLAY, cancelReplay: THIS_REPLAY },
    },
    409: {
      description: 'Not possible in this state; see `code`',
      problem: ['webhook_disabled', 'webhook_held', 'not_subscribed'],
    },
  },
  async handle(dependencies, request) {
    const { actor, body, idempotency } = request
    const replay = { webhookId: param(request, 'id'), range: parseRange(body) }
    if (body.dryRun === true)
      return { status: 200, body: presentReplayCount(await countReplay(dependencies, actor, replay)) }
    // Also where an answer is stored for the key: nothing more is sent to a webhook that is gone.
    await webhookOfPath(dependencies, request)
    const job = presentReplay(await requestReplay(dependencies, actor, replay, idempotency))
    const path = REPLAYS.replace(':orgId', actor.organisationId).replace(':id', job.webhookId)
    return { status: 202, headers: { location: `${path}/${job.id}` }, body: job }
  },
})

const listRoute: Route = {
  method: 'GET',
  path: REPLAYS,
  operationId: 'listReplays',
  summary: 'List the replays to a webhook, newest first',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The newest 100 at most', schema: ReplayListSchema } },
  async handle(dependencies, request) {
    const { organisationId } = request.actor
    const { id: webhookId } = await webhookOfPath(dependencies, request)
    const data = await listReplays(dependencies.dataSource, { organisationId, webhookId })
    return { status: 200, body: { data: data.map(presentReplay) } }
  },
}

const getRoute: Route = {
  method: 'GET',
  path: `${REPLAYS}/:jobId`,
  operationId: 'getReplay',
  summary: 'See how far a replay has come',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The job', schema: ReplaySchema } },
  async handle({ dataSource }, request) {
    const of = { organisationId: request.actor.organisationId, webhookId: param(request, 'id') }
    const job = await findReplay(dataSource, of, param(request, 'jobId'))
    if (job === null) throw notFound('replay')
    return { status: 200, body: presentReplay(job) }
  },
}

const cancelRoute: Route = {
  method: 'DELETE',
  path: `${REPLAYS}/:jobId`,
  operationId: 'cancelReplay',
  summary: 'Cancel a replay',
  description:
    'No further event is sent. Deliveries that it has made go on; one that has ended stays as it is.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: { 204: { description: 'It sends nothing more' } },
  async handle(dependencies, request) {
    await cancelReplayJob(dependencies, request.actor, param(request, 'id'), param(request, 'jobId'))
    return { status: 204 }
  },
}

export const replayRoutes: readonly Route[] = [requestRoute, listRoute, getRoute, cancelRoute]
