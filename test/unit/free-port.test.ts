import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { assertPortFree, freePort } from '../../src/free-port.ts'

describe('freePort', () => {
  it('returns a port that can be listened on', async () => {
    await assertPortFree(await freePort(), 'API', 'PORT')
  })

  // Linux connects out from 32768 to 60999: a port from there may be gone before the server that it is for listens.
  it('returns no port that an outgoing connection may take meanwhile', async () => {
    for (let count = 0; count < 50; count++) expect(await freePort()).to.be.within(1024, 32_767)
  })
})

describe('assertPortFree', () => {
  it('names the port, its part and the variable that changes it', async () => {
    const port = await freePort()
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    try {
      const message = await assertPortFree(port, 'API', 'PORT').catch(
        (error: unknown) => (error as Error).message,
      )
      expect(message).to.equal(`Port ${port} (API) is taken. Stop what uses it or set PORT to another.`)
    } finally {
      server.close()
    }
  })
})
