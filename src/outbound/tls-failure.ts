const UNTRUSTED =
  "The endpoint's certificate does not lead to a trusted authority; an intermediate certificate may be missing."
const OLD_TLS = 'The endpoint does not offer TLS 1.2 or newer.'
const NO_TLS = 'The endpoint does not speak TLS on this port.'
const WANTS_CERTIFICATE = 'The endpoint asks for a client certificate, which Posthorn does not have.'

/** Codes of certificate checks and of OpenSSL, in words a receiver can act on. */
const SENTENCES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "The endpoint's certificate has expired.",
  CERT_NOT_YET_VALID: "The endpoint's certificate is not valid yet.",
  CERT_REVOKED: "The endpoint's certificate was revoked.",
  DEPTH_ZERO_SELF_SIGNED_CERT: "The endpoint's certificate is self-signed.",
  SELF_SIGNED_CERT_IN_CHAIN:
    "The chain of the endpoint's certificate ends in a self-signed one that is not trusted.",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "The endpoint's certificate is for another host name.",
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: OLD_TLS,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: OLD_TLS,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'The endpoint does not speak HTTP/1.1.',
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'The endpoint does not know its own host name.',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
}

/** Other results of the certificate check (X509_V_ERR_* of OpenSSL, without that prefix). */
const OTHER_CERTIFICATE_CODE =
  /^(CERT_|CRL_|UNABLE_TO_|ERROR_IN_CERT_|ERROR_IN_CRL_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|(CA|EE)_(KEY|MD)_)/

/** A sentence for an error of the TLS handshake, by its code; null when it is no such error. */
export function describeTlsError(code: string): string | null {
  const sentence = SENTENCES[code]
  if (sentence !== undefined) return sentence
  if (OTHER_CERTIFICATE_CODE.test(code)) return "The endpoint's certificate is not valid."
  if (/^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test(code))
    return 'No secure connection to the endpoint could be set up.'
  return null
}
