import type { Fault, PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'every request has an answer'

/** Statuses that a sound process gives to a valid request, whatever happens to its database and to Temporal. */
const EXPECTED = [200, 202, 409, 429, 503]

/** Requests are answered, within the 30 s that a caller waits, unless the process was killed or paused meanwhile. */
export function checkAnswers({ publications, actions, faults }: PlayRecord): Violation[] {
  const requests = [
    ...publications.flatMap(({ dataId, tries }) =>
      tries.map((one) => ({ ...one, what: `publish ${dataId}` })),
    ),
    ...actions.map((action) => ({ ...action, what: action.kind })),
  ]
  return requests
    .filter(({ status, from, to }) => {
      if (status === 0)
        return !faults.some((fault) => stopsProcess(fault) && fault.from <= to && fault.to >= from)
      return !EXPECTED.includes(status)
    })
    .map(({ what, status, from, to }) => {
      const outcome = status === 0 ? `no answer within ${Math.round(to - from)} ms` : `was answered ${status}`
      return { rule: RULE, deliveryId: null, detail: `${what}: ${outcome}` }
    })
}

function stopsProcess({ kind }: Fault): boolean {
  return kind === 'kill' || kind === 'pause'
}
