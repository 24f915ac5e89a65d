/**
 * Settles as `work` does, or rejects with the reason of `signal` as soon as that is aborted, whichever is first.
 * `work` is not stopped by this; a later rejection of it is swallowed.
 */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopListening = (): void => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    stopListening = () => signal.removeEventListener('abort', onAbort)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
  try {
    // In this order, an earlier abort wins over work that is done at once.
    return await Promise.race([aborted, work])
  } finally {
    stopListening()
  }
}
