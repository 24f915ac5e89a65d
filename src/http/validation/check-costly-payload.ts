import type { Actor } from '../../accounts/actor.ts'
import { belowData } from '../../catalogue/catalogue.ts'
import { checksOverloaded, invalidFields } from '../../errors.ts'
import type { ApiDependencies } from '../api.ts'

type Dependencies = Pick<ApiDependencies, 'catalogue' | 'payloadThreads' | 'rateLimits' | 'logger'>

/**
 * Checks a payload that may take long, in a thread; any other one was checked with the rest of the body. Throws 422
 * naming its bad fields, also where it takes too long, 429 when the member has used up its time, or 503 when too many
 * wait. Releases `data`, of which `json` is the text.
 */
export async function checkCostlyPayload(
  { catalogue, payloadThreads, rateLimits, logger }: Dependencies,
  { organisationId, memberId }: Actor,
  body: { event: string; data: object },
  json: string,
): Promise<void> {
  const { event: eventKey } = body
  const isCostly = catalogue.isCostly(eventKey, body.data)
  // Parsed it takes up to twenty times the memory of its text, for as long as the request waits.
  body.data = {}
  if (!isCostly) return
  const member = `${organisationId}/${memberId}`
  await rateLimits.validation?.check(member)
  const verdict = await payloadThreads.check({ organisationId, eventKey, json })
  if (verdict.kind === 'busy') throw checksOverloaded()
  await rateLimits.validation?.add(member, Math.ceil(verdict.ms))
  if (verdict.kind === 'stopped') {
    logger.warn({ event: 'payload.check_stopped', organisationId, eventKey }, 'payload.check_stopped')
    throw invalidFields([{ pointer: '/data', code: 'invalid', detail: 'takes too long to check' }])
  }
  if (verdict.errors.length > 0) throw invalidFields(belowData(verdict.errors))
}
