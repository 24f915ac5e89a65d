import { Type } from 'typebox'
import { OPERATOR_SCOPES } from '../../domain/permissions.ts'
import { OPERATOR_STATES, WEBHOOK_STATUSES } from '../../domain/webhook-status.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { givenId } from './organisation.ts'
import { TemporalUiSchema } from './session.ts'
import { holdReason, operatorHold } from './webhook.ts'

const count = (description: string, example = 0) =>
  Type.Integer({ minimum: 0, description, examples: [example] })

const ageMs = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description}, in ms; 0 where there is none`, examples: [340] })

const BacklogSchema = Type.Object(
  {
    openIncidents: count('Webhooks with an open incident', 3),
    waitingForFirstAttempt: count('Deliveries that wait for their first attempt', 12),
    oldestWaitingForFirstAttemptMs: ageMs('Age of the oldest of these that is not paused in Temporal'),
    waitingForRetry: count('Deliveries that wait for a retry', 240),
    permanentlyFailed: count('Deliveries that are permanently failed', 17),
    pausedDeliveries: count('Overdue deliveries whose workflow is paused in Temporal'),
    workflowsOwed: count('Deliveries that were attempted without a workflow, which follows'),
    oldestWorkflowOwedMs: ageMs('Time since the oldest of these ended'),
  },
  { title: 'OperatorBacklog', description: 'Some seconds old at most' },
)

export const OperatorOverviewSchema = Type.Object(
  {
    organisations: count('Organisations, counted up to 100,000', 42),
    webhooks: Type.Object(
      {
        failing: count('Among the 1,000 newest webhooks with an open incident', 2),
        paused: count('With deliveries whose workflow is paused in Temporal, up to 1,000'),
        disabled: count('Disabled, by their organisation or by a hold, counted up to 100,000', 5),
        held: count('Held by the operator, of those that are disabled', 1),
        isCapped: Type.Boolean({
          description: 'More than 1,000 incidents are open, so that more webhooks may be failing',
          examples: [false],
        }),
      },
      { title: 'OperatorWebhookCounts' },
    ),
    backlog: orNull(BacklogSchema, { description: 'Null while it cannot be counted in time' }),
  },
  { title: 'OperatorOverview' },
)

/** Which list of webhooks it is. */
export const OperatorWebhookFilterSchema = Type.Object({
  state: Type.Enum([...OPERATOR_STATES], {
    description:
      '`failing` and `degraded`: by their status, disabled ones too. `paused`: workflows of their deliveries are paused in Temporal. `disabled`: by their organisation, or held by the operator',
  }),
})

export const OperatorWebhookSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.webhook),
    organisation: Type.Object(
      { id: givenId('org_camping'), name: Type.String({ examples: ['Camping Zon'] }) },
      { title: 'OrganisationOfWebhook' },
    ),
    name: Type.String({
      description: 'Host and shortened path of its URL, and the end of its id where something was left out',
      examples: ['hooks.example.com/posthorn'],
    }),
    description: Type.String({ examples: ['Invoices to the accounting'] }),
    status: Type.Enum([...WEBHOOK_STATUSES], {
      title: 'StatusOfWebhook',
      description: 'As in the overview of its organisation',
    }),
    enabled: Type.Boolean(),
    operatorHold,
    since: timestamp(
      '2026-05-04T09:02:12.512Z',
      'Since when it is in this state. Of one that its organisation disabled: its latest change',
    ),
    cause: orNull(Type.String({ examples: ['The endpoint answered 503.'] }), {
      description:
        'What went wrong with the latest failed attempt, or why the operator holds it; null where nothing is known',
    }),
    counts: Type.Object(
      {
        waitingForFirstAttempt: count('Wait for their first attempt'),
        waitingForRetry: count('Wait for a retry', 12),
        permanentlyFailed: count('Are permanently failed', 3),
        stopped: count('Were stopped'),
        paused: count('Have a workflow that is paused in Temporal, counted up to 10,000'),
      },
      { title: 'OperatorDeliveryCounts' },
    ),
    temporalUrl: orNull(
      Type.String({ examples: ['https://temporal.example.com/namespaces/default/workflows'] }),
      {
        description: 'Its workflows in the Temporal UI; null without `TEMPORAL_UI_URL`',
      },
    ),
  },
  { title: 'OperatorWebhook', description: 'Without payloads, secrets and the query of its URL' },
)

/** Body of a hold. */
export const HoldWebhookSchema = Type.Object(
  { reason: holdReason },
  { additionalProperties: false, title: 'HoldWebhook' },
)

export const HeldWebhookSchema = Type.Object(
  { id: id(EXAMPLE_IDS.webhook), enabled: Type.Boolean({ examples: [false] }), operatorHold },
  { title: 'HeldWebhook' },
)

export const OperatorSessionSchema = Type.Object(
  {
    name: Type.String({ description: 'Of the operator key', examples: ['support'] }),
    scopes: Type.Array(Type.Enum([...OPERATOR_SCOPES], { title: 'OperatorScope' }), {
      examples: [['observe', 'manage']],
    }),
    expiresAt: orNull(timestamp('2026-05-04T20:00:00.000Z'), {
      description: 'When the session ends at the latest; null with an operator key',
    }),
    temporalUi: orNull(TemporalUiSchema, {
      description: 'Null where it is not configured',
      examples: [null],
    }),
  },
  { title: 'OperatorSession' },
)
