import { randomUUID } from 'node:crypto'
import { wordsOf } from '../words.ts'
import type { Adapter } from './adapter.ts'

/** One of TOPICS. */
const TOPIC = 'bench'

/** Outpost 1.2. Each run has a tenant of its own. `BENCH_OUTPOST_KEY`: its API_KEY. */
export const adapter: Adapter = {
  name: 'Outpost',
  idHeader: 'x-outpost-event-id',
  async createCustomer(url, hookUrl) {
    const headers = {
      authorization: `Bearer ${process.env['BENCH_OUTPOST_KEY'] ?? ''}`,
      'content-type': 'application/json',
    }
    const tenant = `bench_${randomUUID()}`
    const path = `/api/v1/tenants/${tenant}`
    const call = async (method: string, path: string, body?: object): Promise<void> => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    }
    await call('PUT', path)
    await call('POST', `${path}/destinations`, { type: 'webhook', topics: [TOPIC], config: { url: hookUrl } })
    return {
      request: (bodyBytes) => {
        const event = { tenant_id: tenant, topic: TOPIC, data: { id: 'cus_1', note: '' } }
        const note = wordsOf(bodyBytes - JSON.stringify(event).length)
        return {
          path: '/api/v1/publish',
          headers,
          body: JSON.stringify({ ...event, data: { ...event.data, note } }),
        }
      },
      readIds({ status, body }) {
        if (status !== 202) throw new Error(`${status} ${body}`)
        const { id, destination_ids } = JSON.parse(body) as { id: string; destination_ids: string[] }
        if (destination_ids.length !== 1) throw new Error(`${destination_ids.length} destinations: ${body}`)
        return [id]
      },
      remove: () => call('DELETE', path),
    }
  },
}
