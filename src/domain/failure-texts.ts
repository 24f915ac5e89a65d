import type { FailureCode } from './attempt-outcome.ts'

/**
 * What each failure code of an attempt means, and what to do about it: the text of docs/troubleshooting.md, of the
 * OpenAPI document, and of the failures that the API groups by cause, which the developer area shows.
 */
export const FAILURE_TEXTS: Readonly<Record<FailureCode, { cause: string; cure: string }>> = {
  http_status: {
    cause: 'The endpoint answered with another status than 2xx.',
    cure: 'Look the request up in the log of the endpoint by its X-Webhook-Event-ID, correct what refused it, and answer 2xx as soon as the event is stored.',
  },
  timeout: {
    cause: 'The endpoint did not answer in time: within 15 seconds, unless the operator sets another limit.',
    cure: 'Store the event, answer 2xx at once, and do the work afterwards.',
  },
  connect_timeout: {
    cause: 'No connection to the endpoint could be set up in time.',
    cure: 'Check that the host is up, and that no firewall drops connections from this service.',
  },
  connect_refused: {
    cause: 'The host of the endpoint refused the connection.',
    cure: 'Start the server of the endpoint, or correct the port in the URL.',
  },
  connection_reset: {
    cause: 'The connection broke before the endpoint had answered.',
    cure: 'Look for crashes and restarts of the server, and for a proxy in front of it that closes connections early.',
  },
  tls_error: {
    cause: 'No trusted TLS connection to the endpoint could be set up.',
    cure: 'Install a valid certificate of a public authority for this host name, with its intermediate certificates.',
  },
  dns_error: {
    cause: 'The host name of the endpoint could not be resolved.',
    cure: 'Correct the host name in the URL, or its DNS records.',
  },
  dns_timeout: {
    cause: 'The DNS servers of the host name did not answer in time.',
    cure: 'Check the DNS servers of the domain.',
  },
  blocked_target: {
    cause: 'The host of the endpoint is not on the public internet.',
    cure: 'Use a host with a public address. The operator can open the range of a private one.',
  },
  invalid_response: {
    cause: 'The answer of the endpoint is not valid HTTP/1.1.',
    cure: 'Check that the URL names an HTTP server, and what a proxy in front of it does to answers.',
  },
  network_error: {
    cause: 'The network failed on the way to the endpoint, such as without a route or a free socket.',
    cure: 'Check the network of the host. If other endpoints fail in the same way, the operator checks that of this service.',
  },
  worker_lost: {
    cause: 'The attempt lost its worker five times before an outcome was recorded, and is not sent again.',
    cure: 'Check at the endpoint whether the event arrived. The operator finds out why the workers ended.',
  },
}
