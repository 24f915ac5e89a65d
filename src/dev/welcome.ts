/** What a newcomer needs to see: addresses, the key, and two lines that work when pasted. */
export function welcome(instance: {
  apiUrl: string
  uiUrl: string | null
  receiverUrl: string
  databaseUrl: string
  logFile: string
  organisationId: string
  apiKey: string | null
}): string {
  const { apiUrl, uiUrl, receiverUrl, databaseUrl, logFile, organisationId } = instance
  const key = instance.apiKey ?? '<API_KEY>'
  const base = `${apiUrl}/api/orgs/${organisationId}`
  const post = (path: string, body: object): string =>
    `curl -sS ${base}${path} -H 'x-api-key: ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
  return [
    '',
    'Posthorn is ready.',
    `  API            ${apiUrl}`,
    `  API document   ${apiUrl}/openapi.json`,
    `  Temporal UI    ${uiUrl ?? 'see your own Temporal server'}`,
    `  Demo receiver  ${receiverUrl} (also /fail and /slow)`,
    `  PostgreSQL     ${databaseUrl}`,
    `  Organisation   ${organisationId}`,
    `  API key        ${key}`,
    `  Log            ${logFile}`,
    '',
    'Create a webhook:',
    `  ${post('/webhooks', { url: `${receiverUrl}/`, subscribedEventKeys: ['customer:created'], enabled: true })}`,
    'Publish an event:',
    `  ${post('/events', { event: 'customer:created', data: { id: 'cus_1', firstName: 'Ada' } })}`,
    '',
    'Ctrl-C stops everything; the data stays.',
  ].join('\n')
}
