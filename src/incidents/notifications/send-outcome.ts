/**
 * The outcome of one try to send a message. `sent`: accepted. `refused`: not accepted, and a later try may succeed.
 * `failed`: not accepted, and no try will be. `unknown`: it may have been accepted, so it is never sent again. `error` is
 * a few words for an operator, without secrets.
 */
export type SendOutcome = { state: 'sent' } | { state: 'refused' | 'failed' | 'unknown'; error: string }
