import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seedFromFile } from '../../src/cli/seed.ts'
import { callPosthorn } from './target/posthorn.ts'

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

/** One request to the API. Throws unless it is answered with success. */
export function callApi(apiUrl: string, method: string, path: string, body?: object): Promise<unknown> {
  const { id, apiKey } = ORGANISATION
  return callPosthorn(`${apiUrl}/api/orgs/${id}${path}`, method, { 'x-api-key': apiKey }, body)
}

/** Returns the id of a new webhook that is subscribed to one event key. */
export async function createWebhook(apiUrl: string, url: string, eventKey: string): Promise<string> {
  const body = { url, subscribedEventKeys: [eventKey], enabled: true }
  return ((await callApi(apiUrl, 'POST', '/webhooks', body)) as { id: string }).id
}
