import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seedFromFile } from '../../src/cli/seed.ts'

/** Who publishes and owns the webhooks. Everything is set up through the doors that everybody has. */
export const ORGANISATION = { id: 'org_bench', apiKey: 'phk_bench_full_access_7Qm2xV9dKr4T' } as const

/** As a platform brings organisations in. */
export async function seedOrganisation(databaseUrl: string, folder: string): Promise<void> {
  const member = {
    id: 'mem_bench',
    name: 'Bench',
    email: 'bench@test.example',
    fullAccess: true,
    pushEnabled: false,
    permissions: [],
    apiKeys: [{ name: 'bench', key: ORGANISATION.apiKey }],
  }
  const organisation = {
    id: ORGANISATION.id,
    name: 'Bench',
    email: 'info@test.example',
    supportEmail: null,
    timeZone: 'Europe/Brussels',
    members: [member],
  }
  const file = join(folder, 'seed.json')
  writeFileSync(file, JSON.stringify({ organisations: [organisation] }))
  await seedFromFile(databaseUrl, file)
}

/** One request to the API. Throws unless it is answered with `expected`. */
export async function callApi(
  apiUrl: string,
  method: 'GET' | 'POST',
  path: string,
  { body, expected }: { body?: object; expected: number },
): Promise<unknown> {
  const response = await fetch(`${apiUrl}/api/orgs/${ORGANISATION.id}${path}`, {
    method,
    headers: { 'x-api-key': ORGANISATION.apiKey, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (response.status !== expected) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Returns the id of a new webhook that is subscribed to one event key. */
export async function createWebhook(apiUrl: string, url: string, eventKey: string): Promise<string> {
  const body = { url, subscribedEventKeys: [eventKey], enabled: true }
  const webhook = await callApi(apiUrl, 'POST', '/webhooks', { body, expected: 201 })
  return (webhook as { id: string }).id
}
