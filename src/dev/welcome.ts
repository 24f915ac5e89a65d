import type { Catalogue } from '../catalogue/catalogue.ts'
import { mayReadPayload, type Grants } from '../domain/permissions.ts'
import { MAILBOX_PATH } from './mailbox-page.ts'
import { quoteForShell } from './development-environment.ts'
import type { TemporalCli } from './temporal-dev-server.ts'

/** The key of the commands, and what its member may do. `apiKey`: null where only its hash is known. */
export type ShownKey = { organisationId: string; apiKey: string | null; grants: Grants }

type Instance = ShownKey & {
  catalogue: Catalogue
  apiUrl: string
  metricsUrl: string | null
  uiUrl: string | null
  temporalAddress: string
  /** Null where the environment names a Temporal server. */
  temporalCli: TemporalCli | null
  receiverUrl: string
  databaseUrl: string
  environmentFile: string
  logFile: string
  /** Whether the outbound policy permits webhooks to the receiver's address. */
  isReceiverAllowed: boolean
  operatorKey: string | null
  notifyAfterSeconds: number
  otherMailServer: string | null
}

/** Returns the text after the start: addresses, the key, and commands to paste. */
export function welcome(instance: Instance): string {
  const { apiUrl, uiUrl, receiverUrl, databaseUrl, logFile, organisationId, otherMailServer } = instance
  const { temporalAddress, temporalCli, environmentFile } = instance
  const key = instance.apiKey ?? '<API_KEY>'
  const event = eventToTry(instance.catalogue, instance.grants)
  const hookUrl = instance.isReceiverAllowed ? receiverUrl : 'https://receiver.example.com'
  const refused = instance.isReceiverAllowed ? '' : '; the outbound policy refuses its address'
  const base = `${apiUrl}/api/orgs/${organisationId}`
  const post = (path: string, body: object): string =>
    `curl -sS ${base}${path} -H 'x-api-key: ${key}' -H 'content-type: application/json' -d ${quoteForShell(JSON.stringify(body))}`
  const webhook = (path: string): string =>
    post('/webhooks', {
      url: `${hookUrl}${path}`,
      subscribedEventKeys: [event.subscription],
      enabled: true,
    })
  const ownName = { name: 'Camping Zee', email: 'info@zee.example' }
  const organisation = `curl -sS -X PUT ${apiUrl}/api/operator/organisations/org_zee -H 'x-operator-key: ${instance.operatorKey ?? '<OPERATOR_KEY>'}' -H 'content-type: application/json' -d ${quoteForShell(JSON.stringify(ownName))}`
  const wait = `${instance.notifyAfterSeconds} seconds (POSTHORN_NOTIFY_AFTER_SECONDS; 5 is handy here)`
  const listWorkflows = `${quoteForShell(temporalCli?.path ?? 'temporal')} workflow list --address ${temporalAddress}`
  const elsewhere = otherMailServer === null ? '' : ` (mails go to ${otherMailServer} instead)`
  return [
    '',
    'Posthorn is ready.',
    `  API            ${apiUrl}`,
    `  Developer area ${apiUrl}/developer`,
    `  API reference  ${apiUrl}/docs`,
    `  Metrics        ${instance.metricsUrl ?? 'off (METRICS_PORT)'}`,
    `  Temporal UI    ${uiUrl ?? 'see your own Temporal server'}`,
    `  Temporal       ${temporalAddress}`,
    `  Temporal CLI   ${temporalCli === null ? 'see your own Temporal server' : `${temporalCli.path} (${temporalCli.version})`}`,
    `  Demo receiver  ${receiverUrl} (also /fail and /slow${refused})`,
    `  Mailbox        ${apiUrl}${MAILBOX_PATH}${elsewhere}`,
    `  PostgreSQL     ${databaseUrl}`,
    `  Organisation   ${organisationId}`,
    `  API key        ${instance.apiKey ?? `shown only when it was made; put it in place of ${key}`}`,
    `  Operator key   ${instance.operatorKey ?? 'none (POSTHORN_OPERATOR_KEYS)'}`,
    `  Log            ${logFile}`,
    '',
    'Create a webhook:',
    `  ${webhook('/')}`,
    'Publish an event:',
    `  ${post('/events', { event: event.key, data: event.data })}`,
    `See a notification: create a webhook that always fails and publish again; its mail comes after ${wait}:`,
    `  ${webhook('/fail')}`,
    'Create an organisation of your own, or bring it up to date:',
    `  ${organisation}`,
    'Examine this instance (another command of Posthorn in its place gets the same settings):',
    `  (set -a; . ${quoteForShell(environmentFile)}; npx posthorn doctor)`,
    'List the workflows in Temporal:',
    `  ${listWorkflows}`,
    '',
    'Ctrl-C stops everything; the data stays.',
  ].join('\n')
}

const CUSTOMER = { key: 'customer:created', data: { id: 'cus_1', firstName: 'Ada' } }

/**
 * The event of the README where the catalogue takes it and the member may subscribe to it; otherwise the first that
 * meets both, or else the first.
 */
function eventToTry(
  { eventKeys, isSubscribable, isCostly, validatePayload, permissionFor }: Catalogue,
  grants: Grants,
): { key: string; data: object; subscription: string } {
  const { key, data } = CUSTOMER
  const mayRead = (eventKey: string): boolean => mayReadPayload(grants, eventKey, permissionFor)
  if (isSubscribable(key) && mayRead(key) && !isCostly(key, data) && validatePayload(key, data).length === 0)
    return { ...CUSTOMER, subscription: key }
  const first = eventKeys.find(({ key, subscribable }) => subscribable && mayRead(key))
  const shown = first ?? eventKeys[0]
  return { key: shown?.key ?? '', data: shown?.example ?? {}, subscription: first?.key ?? '*' }
}
