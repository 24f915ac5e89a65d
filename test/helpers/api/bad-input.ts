import { expect } from 'chai'
import { createMember, createWebhookRow } from '../database/factories.ts'
import { secretOf } from './operator.ts'
import { sendRaw, type RawAnswer, type RawRequest } from './raw-request.ts'
import { useApi, type ApiSuite } from './api.ts'

/**
 * One request that must be refused, and how. `{name}` in the path and in header values is replaced by a value of the
 * suite's world (see `createWorld`). Unless said otherwise it is sent with a full-access key, and with a body as JSON.
 */
export type BadInput = {
  title: string
  method?: string
  path?: string
  headers?: Record<string, string | string[] | null>
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is. */
  body?: string | Uint8Array
  status: number
  code: string
  /** For 422: of exactly these fields. */
  pointers?: string[]
  allow?: string[]
}

export const WEBHOOKS = '/api/orgs/{org}/webhooks'
export const WEBHOOK = `${WEBHOOKS}/{webhook}`
export const EVENTS = '/api/orgs/{org}/events'

/** A body that would be accepted. */
export const goodWebhook = {
  url: 'https://receiver.example.com/hook',
  subscribedEventKeys: ['invoice:paid'],
  enabled: true,
}
export const goodEvent = { event: 'customer:created', data: { id: 'cus_1' } }

export type World = ApiSuite & {
  names: Record<string, string>
  send(input: Omit<BadInput, 'title' | 'status' | 'code'>): Promise<RawAnswer>
}

const LEAKS: readonly RegExp[] = [
  /\bat \S+ \(|\.[jt]s:\d+|node_modules/,
  /\b(SELECT|INSERT|UPDATE|DELETE FROM|syntax|constraint|typeorm|postgres)\b/i,
  /phk_/,
  /[0-9a-f]{64}/,
]

/**
 * Declares one test per input, and one that compares all the answers. `more` adds tests of another shape;
 * what they send through `world().send` is looked at too.
 */
export function describeBadInput(
  title: string,
  inputs: readonly BadInput[],
  more: (world: () => World) => void = () => undefined,
): void {
  describe(title, () => {
    const suite = useApi()
    let world: World
    const answers: RawAnswer[] = []

    before(async () => {
      world = await createWorld(suite, answers)
    })

    for (const input of inputs) {
      it(`answers ${input.status} ${input.code} to ${input.title}`, async () => {
        expectRefusal(await world.send(input), input)
      })
    }

    more(() => world)

    it('gives nothing of its insides away in any of these answers, and still works', async () => {
      const refusals = answers.filter(({ status }) => status >= 400)
      expect(refusals.length).to.be.at.least(inputs.length)
      for (const answer of refusals) {
        const whole = JSON.stringify(answer.headers) + answer.text
        for (const leak of LEAKS) expect(whole).to.not.match(leak)
      }
      const { status } = await world.send({ method: 'GET', path: WEBHOOKS })
      expect(status).to.equal(200)
    })
  })
}

/** The answer is the problem that `expected` describes, and contains nothing beyond it. */
export function expectRefusal(answer: RawAnswer, expected: Omit<BadInput, 'title'>): void {
  expect(answer.status, answer.text).to.equal(expected.status)
  expect(answer.headers['content-type']).to.match(/^application\/problem\+json\b/)
  const problem = JSON.parse(answer.text) as Record<string, unknown>
  expect(problem).to.include({ status: expected.status, code: expected.code })
  expect(problem['title']).to.be.a('string')
  if (expected.status === 422 && expected.pointers !== undefined) {
    const pointers = (problem['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)
    expect([...new Set(pointers)]).to.have.members(expected.pointers)
  }
  const { allow } = answer.headers
  if (expected.allow !== undefined) expect(String(allow).split(', ')).to.have.members(expected.allow)
}

async function createWorld({ database, api }: ApiSuite, answers: RawAnswer[]): Promise<World> {
  const { dataSource } = database
  const member = await createMember(dataSource)
  const { organisationId } = member
  const webhook = await createWebhookRow(dataSource, { organisationId, url: 'https://receiver.example.com/' })
  const names: Record<string, string> = {
    org: organisationId,
    member: member.memberId,
    key: member.apiKey,
    operatorKey: secretOf('manager'),
    webhook: webhook.id,
    unknown: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c',
  }
  return {
    api,
    database,
    names,
    async send(input) {
      const answer = await sendRaw(api.url, toRequest(input, names))
      answers.push(answer)
      return answer
    },
  }
}

function toRequest(
  input: Omit<BadInput, 'title' | 'status' | 'code'>,
  names: Record<string, string>,
): RawRequest {
  const body = input.json === undefined ? input.body : JSON.stringify(input.json)
  const { method = body === undefined ? 'GET' : 'POST', path = WEBHOOKS } = input
  const fill = (text: string): string =>
    text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole)
  const wanted: Record<string, string | string[] | null> = {
    'x-api-key': '{key}',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...input.headers,
  }
  const headers = Object.entries(wanted).flatMap(([name, value]) => {
    if (value === null) return []
    return [[name, typeof value === 'string' ? fill(value) : value.map(fill)] as const]
  })
  return {
    method,
    path: fill(path),
    headers: Object.fromEntries(headers),
    ...(body === undefined ? {} : { body }),
  }
}
