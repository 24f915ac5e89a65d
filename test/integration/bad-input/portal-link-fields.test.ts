import { expect } from 'chai'
import { describeBadInput, expectRefusal, type BadInput } from '../../helpers/api/bad-input.ts'
import { secretOf } from '../../helpers/api/operator.ts'

const LINKS = '/api/operator/organisations/{org}/members/{member}/portal-links'
const OPEN = '/api/session/portal-link'
const WEBHOOK = '/webhooks/{unknown}'

const AS_OPERATOR = { 'x-api-key': null, 'x-operator-key': secretOf('portal') }
const AS_PAGE = { 'x-api-key': null, 'sec-fetch-site': 'same-origin' }

const invalid = { status: 422, code: 'invalid_fields' }

const ofPath = (path: string): BadInput => ({
  title: `the path ${JSON.stringify(path)}`,
  path: LINKS,
  headers: AS_OPERATOR,
  json: { path },
  ...invalid,
  pointers: ['/path'],
})

const INPUTS: readonly BadInput[] = [
  ...[
    '//evil.example',
    '/\\evil.example',
    '/../docs',
    '/webhooks/../../docs',
    '/%2e%2e/docs',
    '/webhooks/%2E%2E/docs',
    'https://evil.example/',
    'javascript:alert(1)',
    'webhooks',
    '',
    `${WEBHOOK}/`,
    `${WEBHOOK}?x`,
    '/webhooks\u0000',
  ].map(ofPath),
  {
    title: 'a member that does not exist',
    path: LINKS.replace('{member}', 'nobody'),
    headers: AS_OPERATOR,
    json: {},
    status: 404,
    code: 'not_found',
  },
  {
    title: 'an organisation that does not exist',
    path: LINKS.replace('{org}', 'nobodys'),
    headers: AS_OPERATOR,
    json: {},
    status: 404,
    code: 'not_found',
  },
  { title: 'no token', path: OPEN, headers: AS_PAGE, json: {}, ...invalid, pointers: ['/token'] },
  {
    title: 'a token of another type',
    path: OPEN,
    headers: AS_PAGE,
    json: { token: 7 },
    ...invalid,
    pointers: ['/token'],
  },
  {
    title: 'a token that is too long',
    path: OPEN,
    headers: AS_PAGE,
    json: { token: 'x'.repeat(201) },
    ...invalid,
    pointers: ['/token'],
  },
  {
    title: 'a token that never was',
    path: OPEN,
    headers: AS_PAGE,
    json: { token: '\u0000'.repeat(43) },
    status: 401,
    code: 'invalid_portal_link',
  },
  {
    title: 'a link that a page of another site opens',
    path: OPEN,
    headers: { ...AS_PAGE, 'sec-fetch-site': 'cross-site' },
    json: { token: 'x'.repeat(43) },
    status: 403,
    code: 'cross_site',
  },
  {
    title: 'a form of another site',
    path: OPEN,
    headers: { ...AS_PAGE, 'content-type': 'text/plain' },
    body: '{"token":"x"}',
    status: 415,
    code: 'unsupported_media_type',
  },
]

describeBadInput('portal links', INPUTS, (world) => {
  it('answers 403 needs_tls to a page that came over plain HTTP from another machine', async () => {
    const headers = { ...AS_PAGE, host: 'hooks.example.com' }
    const answer = await world().send({ path: OPEN, headers, json: { token: 'x'.repeat(43) } })
    expectRefusal(answer, { status: 403, code: 'needs_tls' })
    expect(answer.headers).to.not.have.property('set-cookie')
  })
})
