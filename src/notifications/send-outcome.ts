/**
 * How a try to send one message ended. `sent`: accepted. `refused`: provably not accepted, and a later try may do
 * better. `failed`: provably not accepted, and no try will. `unknown`: it may have been accepted, so it is never sent
 * again. `error` is a few words for an operator; it holds no secret.
 */
export type SendOutcome = { state: 'sent' } | { state: 'refused' | 'failed' | 'unknown'; error: string }
