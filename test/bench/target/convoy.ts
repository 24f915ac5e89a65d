import { randomUUID } from 'node:crypto'
import { wordsOf } from '../words.ts'
import { OWN_ID, type Adapter } from './adapter.ts'

const ID_HEADER = 'x-bench-id'

type Made = { uid: string; project: { uid: string }; api_key: { key: string } }

/**
 * Convoy 26. Each run has a project of its own. `BENCH_CONVOY_KEY`: a personal API key of an administrator of the
 * organisation `BENCH_CONVOY_ORGANISATION`. Convoy answers without an id, so each event brings a header of its own.
 */
export const adapter: Adapter = {
  name: 'Convoy',
  idHeader: ID_HEADER,
  async createCustomer(url, hookUrl) {
    const headersWith = (key = ''): Record<string, string> => ({
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
    })
    const call = async (method: string, path: string, body: object = {}): Promise<Made> => {
      const headers = headersWith(process.env['BENCH_CONVOY_KEY'])
      const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
      return (JSON.parse(text) as { data: Made }).data
    }
    const projects = '/api/v1/projects'
    const organisation = process.env['BENCH_CONVOY_ORGANISATION'] ?? ''
    const ofBench = { name: `bench-${randomUUID()}`, type: 'outgoing' }
    const { project, api_key } = await call('POST', `${projects}?orgID=${organisation}`, ofBench)
    const path = `${projects}/${project.uid}`
    const { uid: endpoint_id } = await call('POST', `${path}/endpoints`, { name: 'Bench', url: hookUrl })
    await call('POST', `${path}/subscriptions`, { name: 'Bench', endpoint_id })
    return {
      request: (bodyBytes) => {
        const event = { endpoint_id, event_type: 'bench', custom_headers: { [ID_HEADER]: OWN_ID } }
        const data = { id: 'cus_1', note: '' }
        const note = wordsOf(bodyBytes - JSON.stringify({ ...event, data }).length)
        return {
          path: `${path}/events`,
          headers: headersWith(api_key.key),
          body: JSON.stringify({ ...event, data: { ...data, note } }),
        }
      },
      readIds({ status, body, ownId }) {
        if (status !== 201) throw new Error(`${status} ${body}`)
        return [ownId]
      },
      remove: () => call('DELETE', path),
    }
  },
}
