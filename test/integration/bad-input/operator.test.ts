import { describeBadInput, goodEvent, type BadInput } from '../../helpers/api/bad-input.ts'

const ORGANISATIONS = '/api/operator/organisations'
const ORGANISATION = `${ORGANISATIONS}/{org}`
const MEMBERS = `${ORGANISATION}/members`
const KEYS = `${MEMBERS}/{member}/api-keys`

const headers = { 'x-api-key': null, 'x-operator-key': '{operatorKey}' }
const invalid = { status: 422, code: 'invalid_fields' } as const
const notFound = { status: 404, code: 'not_found' } as const

const good = { name: 'Zon', email: 'info@zon.example' }

const put = (path: string, title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title,
  method: 'PUT',
  path,
  headers,
  json,
  pointers,
  ...invalid,
})

const organisation = (title: string, change: object, ...pointers: string[]): BadInput =>
  put(ORGANISATION, `an organisation ${title}`, { ...good, ...change }, ...pointers)

const member = (title: string, change: object, ...pointers: string[]): BadInput =>
  put(`${MEMBERS}/mem_new`, `a member ${title}`, { ...good, ...change }, ...pointers)

const key = (title: string, json: object, ...pointers: string[]): BadInput => ({
  title: `an API key ${title}`,
  path: KEYS,
  headers,
  json,
  pointers,
  ...invalid,
})

const fields: BadInput[] = [
  organisation('with a line break in its name', { name: 'a\nb' }, '/name'),
  organisation('with NUL in its name', { name: 'a\u0000' }, '/name'),
  organisation('with a lone surrogate in its name', { name: '\ud800' }, '/name'),
  organisation('with characters that reorder others in its name', { name: 'a\u202eb\u202c' }, '/name'),
  organisation('with two addresses', { email: 'a@b.example, c@d.example' }, '/email'),
  organisation('with a header in its address', { email: 'a@b.example\r\nBcc: c@d.example' }, '/email'),
  organisation('with an unknown time zone', { timeZone: 'Europe/Nowhere' }, '/timeZone'),
  organisation(
    'with every field wrong',
    { name: 1, email: 'x', timeZone: 2 },
    '/name',
    '/email',
    '/timeZone',
  ),
  put(`${ORGANISATIONS}/a%20b`, 'an organisation with a space in its id', good, '/orgId'),
  put(`${ORGANISATIONS}/${'a'.repeat(65)}`, 'an organisation with an id of 65 characters', good, '/orgId'),
  put(`${ORGANISATIONS}/%00`, 'an organisation with NUL in its id', good, '/orgId'),
  put(`${MEMBERS}/a.b`, 'a member with a dot in its id', good, '/memberId'),
  member('with a permission of another form', { permissions: ['webhook', 'webhook:read'] }, '/permissions/0'),
  member('with 501 permissions', { permissions: Array(501).fill('webhook:read') }, '/permissions'),
  member('with characters that reorder others in its name', { name: '\u2067a\u2069' }, '/name'),
  key('with characters that reorder others in its name', { name: 'ci\u200f' }, '/name'),
  key('that ends in the past', { name: 'ci', expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'),
  key('that ends on a day without a time', { name: 'ci', expiresAt: '2099-01-01' }, '/expiresAt'),
  key(
    'that ends on a day that does not exist',
    { name: 'ci', expiresAt: '2099-02-30T00:00:00Z' },
    '/expiresAt',
  ),
]

const lists: BadInput[] = [
  { title: 'a limit of 101', path: `${ORGANISATIONS}?limit=101`, headers, pointers: ['/limit'], ...invalid },
  { title: 'an unknown parameter', path: `${MEMBERS}?all=1`, headers, pointers: ['/all'], ...invalid },
  {
    title: 'a cursor of another list',
    path: `${ORGANISATIONS}?cursor=bTE6bWVtX2Fu`,
    headers,
    status: 400,
    code: 'invalid_cursor',
  },
]

const unknown: BadInput[] = [
  { title: 'GET of an unknown organisation', path: `${ORGANISATIONS}/unknown`, headers, ...notFound },
  { title: 'GET of an organisation with NUL', path: `${ORGANISATIONS}/%00`, headers, ...notFound },
  {
    title: 'DELETE of an unknown organisation',
    method: 'DELETE',
    path: `${ORGANISATIONS}/unknown`,
    headers,
    ...notFound,
  },
  {
    title: 'PUT of a member in an unknown organisation',
    method: 'PUT',
    path: `${ORGANISATIONS}/unknown/members/mem_an`,
    headers,
    json: good,
    ...notFound,
  },
  {
    title: 'a key for an unknown member',
    path: `${MEMBERS}/unknown/api-keys`,
    headers,
    json: { name: 'ci' },
    ...notFound,
  },
  {
    title: 'DELETE of a key by its name',
    method: 'DELETE',
    path: `${KEYS}/ci`,
    headers,
    ...notFound,
  },
]

const access: BadInput[] = [
  {
    title: 'an operator key in the header of API keys',
    path: ORGANISATIONS,
    headers: { 'x-api-key': '{operatorKey}' },
    status: 401,
    code: 'unauthenticated',
  },
  {
    title: 'two operator keys',
    path: ORGANISATIONS,
    headers: { 'x-api-key': null, 'x-operator-key': ['{operatorKey}', '{operatorKey}'] },
    status: 401,
    code: 'unauthenticated',
  },
  {
    title: 'publishing for an unknown organisation',
    path: '/api/orgs/unknown/events',
    headers: { 'x-api-key': null, 'x-operator-key': '{publishKey}' },
    json: goodEvent,
    ...notFound,
  },
  {
    title: 'a method that the path does not have',
    method: 'PATCH',
    path: ORGANISATION,
    headers,
    json: good,
    status: 405,
    code: 'method_not_allowed',
    allow: ['HEAD', 'GET', 'PUT', 'DELETE'],
  },
  {
    title: 'a body of 17 KB',
    method: 'PUT',
    path: ORGANISATION,
    headers,
    json: { ...good, name: 'a'.repeat(17_000) },
    status: 413,
    code: 'body_too_large',
  },
]

const OBSERVED = '/api/operator/webhooks'
const HOLD = `${ORGANISATION}/webhooks/{webhook}/disable`
const observing = { 'x-api-key': null, 'x-operator-key': '{observeKey}' }

const held = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title: `a hold ${title}`,
  path: HOLD,
  headers,
  json,
  pointers,
  ...invalid,
})
const observed = (title: string, query: string, ...pointers: string[]): BadInput => ({
  title: `a list of webhooks ${title}`,
  method: 'GET',
  path: `${OBSERVED}${query}`,
  headers: observing,
  pointers,
  ...invalid,
})

const view: BadInput[] = [
  held('with a line break in its reason', { reason: 'a\nb' }, '/reason'),
  observed('without a state', '', '/state'),
  observed('in an unknown state', '?state=healthy', '/state'),
  observed('in two states', '?state=failing&state=paused', '/state'),
  observed('of 101', '?state=failing&limit=101', '/limit'),
  ...['o1org_camping', 'w1', `w1${'0'.repeat(33)}`].map((cursor): BadInput => ({
    title: `a list of webhooks with the cursor ${cursor}`,
    method: 'GET',
    path: `${OBSERVED}?state=failing&cursor=${cursor}`,
    headers: observing,
    status: 400,
    code: 'invalid_cursor',
  })),
  ...[
    'unknown/webhooks/{webhook}',
    '{otherOrg}/webhooks/{webhook}',
    '{org}/webhooks/{unknown}',
    '{org}/webhooks/1',
  ].flatMap((webhook) =>
    ['disable', 'enable'].map((action): BadInput => ({
      title: `${action} of ${webhook}`,
      method: 'POST',
      path: `${ORGANISATIONS}/${webhook}/${action}`,
      headers,
      ...(action === 'disable' ? { json: { reason: 'It floods us.' } } : {}),
      ...notFound,
    })),
  ),
]

describeBadInput('bad input to the operator API', [...fields, ...lists, ...unknown, ...access, ...view])
