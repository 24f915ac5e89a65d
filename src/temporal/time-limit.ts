/**
 * Waits for `promise` at most `timeoutMs`, or until `signal` aborts, and then throws. A later result is passed to `dispose`,
 * so that nothing stays open.
 */
export async function withTimeLimit<T>(
  promise: Promise<T>,
  limits: { what: string; timeoutMs: number; signal: AbortSignal },
  dispose: (late: T) => Promise<void>,
): Promise<T> {
  const { what, timeoutMs, signal } = limits
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  let giveUp: () => void = () => undefined
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(new Error(`${what} took too long`))
    if (limit.aborted) giveUp()
    else limit.addEventListener('abort', giveUp, { once: true })
  })
  try {
    return await Promise.race([promise, givenUp])
  } catch (error) {
    promise.then(dispose).catch(() => undefined)
    throw error
  } finally {
    limit.removeEventListener('abort', giveUp)
  }
}
