import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

const LOOPBACK = '127.0.0.1'

// Below the ports from which systems connect out: none of these is taken as a local port between two steps of a start.
const FIRST_PORT = 10_240
const FIRST_OUTGOING_PORT = 32_768
const MAX_TRIES = 50

/**
 * Finds a TCP port of 127.0.0.1 that nothing listened on a moment ago, and that no outgoing connection takes.
 *
 * @throws Error of the last port that was tried, when every one was taken
 */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return await listenOnce(randomInt(FIRST_PORT, FIRST_OUTGOING_PORT))
    } catch (error) {
      if (tries === MAX_TRIES) throw error
    }
  }
}

/**
 * Makes sure that a port can be listened on.
 *
 * @param what the part that wants it, such as `API`
 * @param variable the environment variable that sets it
 * @throws Error naming port, part and variable, when it is taken or not allowed
 */
export async function assertPortFree(port: number, what: string, variable: string): Promise<void> {
  try {
    await listenOnce(port)
  } catch (error) {
    throw portError(error, { port, what, variable })
  }
}

/** Returns the error of a port that cannot be listened on, with the variable that sets it. */
export function portError(
  error: unknown,
  { port, what, variable }: { port: number; what: string; variable: string },
): Error {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    const wayOut = `Stop what uses it or set ${variable} to another.`
    return new Error(`Port ${port} (${what}) is taken. ${wayOut}`, { cause: error })
  }
  const wayOut = `Set ${variable} to another.`
  return new Error(`Port ${port} (${what}) cannot be used: ${message}. ${wayOut}`, { cause: error })
}

async function listenOnce(port: number): Promise<number> {
  const server = createServer()
  server.listen(port, LOOPBACK)
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return address.port
}
