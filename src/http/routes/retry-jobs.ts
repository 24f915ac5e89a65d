import { EXAMPLE_IDS } from '../schemas/common.ts'
import { findRetryJob, listRetryJobs } from '../../db/queries/retry-jobs.ts'
import { requestRetryJob } from '../../deliveries/retry/request-retry-job.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../problem-error.ts'
import { listRoute } from '../list-route.ts'
import { presentRetryJob } from '../presenters/presenter.ts'
import { param, typedRoute, type Route } from '../route.ts'
import {
  MAX_SELECTION_BYTES,
  parseDeliverySelection,
  RetryDeliveriesSchema,
  RetryJobSchema,
  retrySelectionErrors,
  STATE_CONFLICT,
} from '../schemas/retry.ts'

const JOBS = '/api/orgs/:orgId/webhooks/retry-deliveries'

const retryDeliveriesRoute = typedRoute({
  method: 'POST',
  path: JOBS,
  operationId: 'retryDeliveries',
  summary: 'Retry deliveries',
  description:
    'Background work: the answer is a job whose progress can be read. Deliveries whose event key their webhook is not subscribed to are neither counted nor attempted. Of one webhook, `deliveryIds` or `filter` limit it further.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: {
    schema: RetryDeliveriesSchema,
    maxBytes: MAX_SELECTION_BYTES,
    rules: retrySelectionErrors,
    example: { mode: 'failed', id: EXAMPLE_IDS.webhook },
  },
  idempotent: true,
  responses: {
    202: {
      description: 'The job',
      schema: RetryJobSchema,
      headers: { Location: 'Path of the job' },
      links: { getRetryJob: { jobId: '$response.body#/id' } },
    },
    409: { description: STATE_CONFLICT, problem: ['webhook_disabled', 'webhook_held'] },
  },
  async handle(dependencies, { actor, body, idempotency }) {
    const selection = parseDeliverySelection(body)
    const scope = { mode: body.mode, webhookId: body.id?.toLowerCase() ?? null, selection }
    const job = await requestRetryJob(dependencies, actor, scope, idempotency)
    const location = `${JOBS.replace(':orgId', actor.organisationId)}/${job.id}`
    return { status: 202, headers: { location }, body: presentRetryJob(job) }
  },
})

const listJobsRoute = listRoute({
  path: JOBS,
  operationId: 'listRetryJobs',
  summary: "List the organisation's retry jobs, newest first",
  description: 'Each with its progress and outcome. A job that has ended is kept for 30 days.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  title: 'RetryJobList',
  item: RetryJobSchema,
  what: 'Jobs',
  cursorPrefix: 'r1',
  exampleId: EXAMPLE_IDS.retryJob,
  links: { getRetryJob: { jobId: '$response.body#/data/0/id' } },
  open:
    ({ dataSource }, { actor }) =>
    (range) =>
      listRetryJobs(dataSource, actor.organisationId, range),
  present: presentRetryJob,
})

const retryJobRoute: Route = {
  method: 'GET',
  path: `${JOBS}/:jobId`,
  operationId: 'getRetryJob',
  summary: 'See how far a retry job has come',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The job', schema: RetryJobSchema } },
  async handle({ dataSource }, request) {
    const job = await findRetryJob(dataSource, request.actor.organisationId, param(request, 'jobId'))
    if (job === null) throw notFound('retry job')
    return { status: 200, body: presentRetryJob(job) }
  },
}

export const retryJobRoutes: readonly Route[] = [retryDeliveriesRoute, listJobsRoute, retryJobRoute]
