import { createECDH } from 'node:crypto'
import webPush from 'web-push'
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { HttpClient, PostResult } from '../../outbound/http-client.ts'
import { StoppingError } from '../../shutdown.ts'
import type { SendOutcome } from './mail-text.ts'
import { parseUrl } from '../../domain/text-rules.ts'

/** The address of a browser at its push service, and the keys that encrypt messages for it (RFC 8291). */
type PushSubscription = { endpoint: string; p256dh: string; auth: string }

export type Pusher = {
  /** The `applicationServerKey` with which browsers subscribe, base64url. */
  publicKey: string
  /**
   * Sends `message` as JSON to the push service, once. `topic` is the id of the incident: a push service keeps only the
   * latest message of a topic for a browser that is offline. Takes at most as long as the HTTP client.
   */
  send(subscription: PushSubscription, message: object, options: { topic: string }): Promise<SendOutcome>
}

type Options = {
  /** 32 bytes as base64url (RFC 8292). */
  privateKey: string
  /** The operator's address for push services: `mailto:` or `https:`. */
  subject: string
  httpClient: Pick<HttpClient, 'post'>
}

/** How long a push service keeps a message for a browser that is offline. */
const TTL_SECONDS = 24 * 60 * 60

/**
 * Creates a sender of Web Push messages. An endpoint is a browser's choice, so it is reached like a customer's: through
 * the outbound policy, without redirects, within a deadline.
 * @throws Error when the key or the subject is not valid.
 */
export function createPusher({ privateKey, subject, httpClient }: Options): Pusher {
  const publicKey = vapidPublicKey(privateKey)
  const vapidDetails = { subject, publicKey, privateKey }
  // Throws at the start; later it would fail every message and appear as an error of the subscription.
  webPush.getVapidHeaders('https://push.example', subject, publicKey, privateKey, 'aes128gcm')

  async function send(
    subscription: PushSubscription,
    message: object,
    { topic }: { topic: string },
  ): Promise<SendOutcome> {
    const url = parseUrl(subscription.endpoint)?.href
    if (url === undefined) return failed('the address of the push service is not valid')
    const request = encrypted({ ...subscription, endpoint: url }, message, topic)
    if (request === null) return failed('the keys of the subscription are not valid')
    try {
      return outcomeOf(await httpClient.post({ url, ...request }))
    } catch (error) {
      if (!(error instanceof StoppingError)) throw error
      return { state: 'refused', error: 'Posthorn is shutting down' }
    }
  }

  /** Encrypts the message for this browser and adds the VAPID headers; null when the subscription's keys are invalid. */
  function encrypted(
    { endpoint, p256dh, auth }: PushSubscription,
    message: object,
    topic: string,
  ): { headers: Record<string, string>; body: Buffer } | null {
    try {
      const { headers, body } = webPush.generateRequestDetails(
        { endpoint, keys: { p256dh, auth } },
        JSON.stringify(message),
        // RFC 8030 gives a topic 32 characters at most.
        { vapidDetails, TTL: TTL_SECONDS, topic: topic.replaceAll('-', ''), contentEncoding: 'aes128gcm' },
      )
      // The HTTP client sets the length itself.
      const withoutLength = Object.entries(headers).filter(([name]) => name !== 'Content-Length')
      return { headers: Object.fromEntries(withoutLength), body }
    } catch {
      return null
    }
  }

  return { publicKey, send }
}

/**
 * Returns the public key of a VAPID private key, both base64url.
 * @throws Error when it is no key of the curve P-256.
 */
export function vapidPublicKey(privateKey: string): string {
  const keys = createECDH('prime256v1')
  keys.setPrivateKey(Buffer.from(privateKey, 'base64url'))
  return keys.getPublicKey().toString('base64url')
}

function outcomeOf({ succeeded, statusCode, failureCode, error }: PostResult): SendOutcome {
  if (succeeded) return { state: 'sent' }
  if (statusCode !== null) return outcomeOfStatus(statusCode)
  const state = failureCode === null ? 'unknown' : stateAfter(failureCode)
  return { state, error: error ?? 'the push service gave no answer' }
}

function outcomeOfStatus(status: number): SendOutcome {
  if (status >= 500) return { state: 'unknown', error: `the push service answered ${status}` }
  if (status === 404 || status === 410) {
    return { ...failed(`the browser is no longer subscribed (${status})`), isObsolete: true }
  }
  switch (status) {
    case 429:
      return { state: 'refused', error: 'the push service asks for fewer messages (429)' }
    case 401:
    case 403:
      // RFC 8292, 4.2: the key, or the clock by which the token expires. As a mail server that refuses the password.
      return { state: 'refused', error: `the push service refused the VAPID key or token (${status})` }
    case 413:
      return failed('the message is too large for the push service (413)')
    default:
      return failed(`the push service ${status < 400 ? 'redirects' : 'refused the message'} (${status})`)
  }
}

function stateAfter(failureCode: FailureCode): 'refused' | 'failed' | 'unknown' {
  switch (failureCode) {
    case 'connect_refused':
    case 'connect_timeout':
    case 'dns_error':
    case 'dns_timeout':
    case 'tls_error':
      // There was no connection, so nothing was sent.
      return 'refused'
    case 'blocked_target':
      return 'failed'
    case 'http_status':
    case 'timeout':
    case 'connection_reset':
    case 'invalid_response':
    case 'network_error':
    case 'worker_lost':
      return 'unknown'
  }
}

function failed(error: string): { state: 'failed'; error: string } {
  return { state: 'failed', error }
}
