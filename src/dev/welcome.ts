import { MAILBOX_PATH } from './mailbox-page.ts'

/** What a newcomer needs to see: addresses, the key, and lines that work when pasted. */
export function welcome(instance: {
  apiUrl: string
  metricsUrl: string | null
  uiUrl: string | null
  receiverUrl: string
  databaseUrl: string
  logFile: string
  organisationId: string
  apiKey: string | null
  notifyAfterSeconds: number
  otherMailServer: string | null
}): string {
  const { apiUrl, uiUrl, receiverUrl, databaseUrl, logFile, organisationId, otherMailServer } = instance
  const key = instance.apiKey ?? '<API_KEY>'
  const base = `${apiUrl}/api/orgs/${organisationId}`
  const post = (path: string, body: object): string =>
    `curl -sS ${base}${path} -H 'x-api-key: ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
  const webhook = (path: string): string =>
    post('/webhooks', {
      url: `${receiverUrl}${path}`,
      subscribedEventKeys: ['customer:created'],
      enabled: true,
    })
  const wait = `${instance.notifyAfterSeconds} seconds (POSTHORN_NOTIFY_AFTER_SECONDS; 5 is handy here)`
  const elsewhere = otherMailServer === null ? '' : ` (mails go to ${otherMailServer} instead)`
  return [
    '',
    'Posthorn is ready.',
    `  API            ${apiUrl}`,
    `  Developer area ${apiUrl}/developer`,
    `  API reference  ${apiUrl}/docs`,
    `  Metrics        ${instance.metricsUrl ?? 'off (METRICS_PORT)'}`,
    `  Temporal UI    ${uiUrl ?? 'see your own Temporal server'}`,
    `  Demo receiver  ${receiverUrl} (also /fail and /slow)`,
    `  Mailbox        ${apiUrl}${MAILBOX_PATH}${elsewhere}`,
    `  PostgreSQL     ${databaseUrl}`,
    `  Organisation   ${organisationId}`,
    `  API key        ${key}`,
    `  Log            ${logFile}`,
    '',
    'Create a webhook:',
    `  ${webhook('/')}`,
    'Publish an event:',
    `  ${post('/events', { event: 'customer:created', data: { id: 'cus_1', firstName: 'Ada' } })}`,
    `See a notification: create a webhook that always fails and publish again; its mail comes after ${wait}:`,
    `  ${webhook('/fail')}`,
    '',
    'Ctrl-C stops everything; the data stays.',
  ].join('\n')
}
