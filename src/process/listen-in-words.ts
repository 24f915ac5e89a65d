import type Koa from 'koa'
import { portError } from '../free-port.ts'
import { listen, type Listening, type ListenOptions } from '../http/listen.ts'

/** What listens, and the variables that say where. */
export type Listener = { what: string; hostVariable: string; portVariable: string }

/** Listens like `listen`. Throws an error that names the variable to change. */
export async function listenInWords(
  { what, hostVariable, portVariable }: Listener,
  app: Koa,
  options: ListenOptions,
): Promise<Listening> {
  try {
    return await listen(app, options)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
      const cure = `Set ${hostVariable} to an address of this machine.`
      throw new Error(`${options.host} (${what}) cannot be listened on: ${message}. ${cure}`, {
        cause: error,
      })
    }
    throw portError(error, { port: options.port, what, variable: portVariable })
  }
}
