import { describeBadInput, type BadInput } from '../../helpers/api/bad-input.ts'

const bad = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title,
  path: '/api/orgs/{org}/api-keys',
  json,
  pointers,
  status: 422,
  code: 'invalid_fields',
})

describeBadInput("bad fields of a member's own key", [
  bad('no name', {}, '/name'),
  bad('an empty name', { name: '' }, '/name'),
  bad('a name with a line break', { name: 'a\nb' }, '/name'),
  bad('a name of 201 characters', { name: 'a'.repeat(201) }, '/name'),
  bad('an expiry in the past', { name: 'ci', expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'),
  bad('an expiry that is a number', { name: 'ci', expiresAt: 5 }, '/expiresAt'),
  bad('the key of another member', { name: 'ci', memberId: 'mem_an' }, '/memberId'),
  bad('permissions of its own', { name: 'ci', permissions: ['*'] }, '/permissions'),
])
