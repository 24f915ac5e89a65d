import { describeBadInput, WEBHOOK, type BadInput } from '../../helpers/api/bad-input.ts'

const SINCE = '2026-01-01T00:00:00.000Z'

const bad = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title,
  path: `${WEBHOOK}/replays`,
  json,
  pointers,
  status: 422,
  code: 'invalid_fields',
})

describeBadInput('bad fields of a replay', [
  bad('a start in the future', { since: '2100-01-01T00:00:00.000Z' }, '/since'),
  bad('a start that is no time', { since: 'yesterday' }, '/since'),
  bad('an end before the start', { since: SINCE, until: '2025-01-01T00:00:00.000Z' }, '/until'),
  bad('an end at the start', { since: SINCE, until: SINCE }, '/until'),
  bad('an unknown event key', { since: SINCE, eventKeys: ['invoice:paid', 'invoice:eaten'] }, '/eventKeys/1'),
  bad('* as an event key', { since: SINCE, eventKeys: ['*'] }, '/eventKeys/0'),
])
