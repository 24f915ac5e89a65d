import { expect } from 'chai'
import { builtInCatalogue } from '../../../../src/catalogue/built-in-catalogue.ts'
import { ProblemError } from '../../../../src/problem-error.ts'
import type { ApiDependencies } from '../../../../src/http/api.ts'
import type { RouteRequest } from '../../../../src/http/route.ts'
import { routes } from '../../../../src/http/routes/index.ts'
import { bodyCheck } from '../../../../src/http/validation/check-request.ts'

const WEBHOOK = {
  id: '0190b6a4-7c11-7d31-9f4e-5c9f1d2a3b4c',
  url: 'https://hooks.customer.com/',
  description: null,
  subscribedEventKeys: ['invoice:paid'],
  enabled: true,
  heldAt: null,
  createdAt: new Date(),
  updatedAt: new Date(),
}

/** What the rules of bodies use. */
const dependencies = {
  dataSource: { getRepository: () => ({ findOne: () => Promise.resolve(WEBHOOK) }) },
  catalogue: builtInCatalogue,
  clock: { nowMs: () => Date.now() },
  urlPolicy: { allowHttp: false, allowedCidrs: [] },
} as unknown as ApiDependencies

const actor = { organisationId: 'org', fullAccess: true, permissions: [] }

const withBody = routes.flatMap(({ operationId, body }) =>
  body === undefined ? [] : [{ operationId, body }],
)

/** Of the processor; it takes some 10 ms. */
const MAX_CPU_MS = 100
const MAX_ANSWER_CHARACTERS = 100_000

describe('the body of a request', () => {
  for (const { operationId, body } of withBody)
    it(`of ${operationId} is refused quickly and briefly, whatever it holds`, async () => {
      const check = bodyCheck(body)
      const fill = (item: string): string =>
        `[${Array.from({ length: body.maxBytes / (item.length + 1) - 20 }, () => item).join(',')}]`
      const names = Array.from({ length: body.maxBytes / 12 }, (_, index) => `"${index.toString(36)}":0`)
      const fields = Object.keys((body.schema as { properties?: object }).properties ?? {})
      const bodies = [
        `{${names.join(',')}}`,
        `{"${'x'.repeat(body.maxBytes - 10)}":0}`,
        ...fields.flatMap((field) => [
          ...['0', '""', '{}', '[]'].map((item) => `{"${field}":${fill(item)}}`),
          `{"${field}":{${names.join(',')}}}`,
          `{"${field}":"${'x'.repeat(body.maxBytes - 100)}"}`,
        ]),
      ]
      for (const text of bodies) {
        const request = { actor, params: { id: WEBHOOK.id }, body: JSON.parse(text) as unknown }
        const refusal = async (): Promise<ProblemError['problem'] | null> => {
          try {
            await check(request as unknown as RouteRequest, dependencies)
          } catch (error) {
            if (error instanceof ProblemError) return error.problem
            throw error
          }
          return null
        }
        let problem = await refusal()
        let tookMs = Infinity
        // The least of some: the process collects garbage meanwhile.
        for (let time = 0; time < 5 && tookMs >= MAX_CPU_MS; time++) {
          const startedAt = process.cpuUsage()
          problem = await refusal()
          const { user, system } = process.cpuUsage(startedAt)
          tookMs = Math.min(tookMs, (user + system) / 1_000)
        }
        const shown = `${text.slice(0, 60)}: ${tookMs.toFixed(0)} ms`
        expect(problem?.errors ?? [], shown).to.have.length.at.most(100)
        // A name that is too much is repeated, once.
        expect(JSON.stringify(problem).length, shown).to.be.below(MAX_ANSWER_CHARACTERS + 2 * body.maxBytes)
        expect(tookMs, shown).to.be.below(MAX_CPU_MS)
      }
    })
})
