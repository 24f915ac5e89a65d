import { createECDH } from 'node:crypto'
import webPush from 'web-push'
import type { FailureCode } from '../domain/attempt-outcome.ts'
import type { HttpClient, PostResult } from '../outbound/http-client.ts'
import { StoppingError } from '../shutdown.ts'
import type { SendOutcome } from './send-outcome.ts'

/** What a browser gives for the push service to be reached and the message to be read by nobody else (RFC 8291). */
type PushSubscription = { endpoint: string; p256dh: string; auth: string }

/** `gone`: the browser no longer has this subscription, so it is to be forgotten. */
export type PushOutcome = SendOutcome & { gone?: boolean }

export type Pusher = {
  /** What browsers subscribe with (`applicationServerKey`), base64url. */
  publicKey: string
  /**
   * One try to hand `message`, as JSON, to the push service. `topic` is the id of the incident: a push service keeps
   * only the latest message of a topic for a browser that is away. Takes as long as the HTTP client does at most.
   */
  send(subscription: PushSubscription, message: object, options: { topic: string }): Promise<PushOutcome>
}

type Options = {
  /** 32 bytes as base64url (RFC 8292). */
  privateKey: string
  /** How a push service can reach whoever runs Posthorn: `mailto:` or `https:`. */
  subject: string
  httpClient: Pick<HttpClient, 'post'>
}

/** How long a push service keeps a message for a browser that is away. Later the incident is yesterday's news. */
const TTL_SECONDS = 24 * 60 * 60

/**
 * Sends Web Push messages. The endpoint was named by a browser, so it is reached like a customer's: through the
 * outbound policy, without redirects, within a deadline.
 * @throws Error when the key or the subject cannot be used.
 */
export function createPusher({ privateKey, subject, httpClient }: Options): Pusher {
  const publicKey = vapidPublicKey(privateKey)
  const vapidDetails = { subject, publicKey, privateKey }
  // Throws now what would otherwise look like the fault of each subscription.
  webPush.getVapidHeaders('https://push.example', subject, publicKey, privateKey, 'aes128gcm')

  async function send(
    subscription: PushSubscription,
    message: object,
    { topic }: { topic: string },
  ): Promise<PushOutcome> {
    if (!URL.canParse(subscription.endpoint)) return failed('the address of the push service is not valid')
    const url = new URL(subscription.endpoint).href
    const request = sealed({ ...subscription, endpoint: url }, message, topic)
    if (request === null) return failed('the keys of the subscription are not valid')
    try {
      return outcomeOf(await httpClient.post({ url, ...request }))
    } catch (error) {
      if (!(error instanceof StoppingError)) throw error
      return { state: 'refused', error: 'Posthorn is shutting down' }
    }
  }

  /** The message as only this browser can read it, with what tells the push service who sends it. */
  function sealed(
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
      // The HTTP client counts the bytes itself.
      const own = Object.entries(headers).filter(([name]) => name !== 'Content-Length')
      return { headers: Object.fromEntries(own), body }
    } catch {
      return null
    }
  }

  return { publicKey, send }
}

/**
 * The public key, base64url, that belongs to a VAPID private key.
 * @throws Error when that is no key of the curve P-256.
 */
export function vapidPublicKey(privateKey: string): string {
  const keys = createECDH('prime256v1')
  keys.setPrivateKey(Buffer.from(privateKey, 'base64url'))
  return keys.getPublicKey().toString('base64url')
}

function outcomeOf({ succeeded, statusCode, failureCode, error }: PostResult): PushOutcome {
  if (succeeded) return { state: 'sent' }
  if (statusCode !== null) return outcomeOfStatus(statusCode)
  const state = failureCode === null ? 'unknown' : stateAfter(failureCode)
  return { state, error: error ?? 'the push service gave no answer' }
}

function outcomeOfStatus(status: number): PushOutcome {
  if (status >= 500) return { state: 'unknown', error: `the push service answered ${status}` }
  if (status === 404 || status === 410) {
    return { ...failed(`the browser is no longer subscribed (${status})`), gone: true }
  }
  switch (status) {
    case 429:
      return { state: 'refused', error: 'the push service asks for fewer messages (429)' }
    case 403:
      return failed('the push service expects another VAPID key for this subscription (403)')
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
      // Nothing was sent: there was no connection to send it over.
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
