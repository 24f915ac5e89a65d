import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { assertPortFree, freePort } from '../../src/free-port.ts'

describe('freePort', () => {
  it('returns a port that can be listened on', async () => {
    const port = await freePort()
    expect(port).to.be.within(1024, 65535)
    await assertPortFree(port, 'API', 'PORT')
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
