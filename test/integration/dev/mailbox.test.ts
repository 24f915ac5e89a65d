import { expect } from 'chai'
import { useApi } from '../../helpers/api/api.ts'

describe('the API outside development', () => {
  const suite = useApi()

  for (const method of ['GET', 'HEAD', 'POST']) {
    it(`has no mailbox: ${method} is 404`, async () => {
      const answer = await fetch(`${suite.api.url}/dev/mailbox`, { method, headers: { accept: 'text/html' } })
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([404, null])
      expect(answer.headers.get('content-type')).to.include('application/problem+json')
    })
  }
})
