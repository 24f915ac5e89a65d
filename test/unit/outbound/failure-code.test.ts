import { STATUS_CODES } from 'node:http'
import { expect } from 'chai'
import { errors as undiciErrors } from 'undici'
import { describeError, describeStatus, isBrokenTls } from '../../../src/outbound/failure-code.ts'

/** What libraries put into the text of their errors. */
const SAID = 'connect ECONNREFUSED 10.1.2.3:8443 db.internal: the-endpoint-said-so'

const withCode = (code: string): Error => Object.assign(new Error(SAID), { code })

const THROWN: readonly (readonly [title: string, thrown: unknown])[] = [
  ...[
    ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EMFILE', 'ENOTFOUND', 'EPROTO'],
    ...['UND_ERR_SOCKET', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_INFO', 'ERR_ASSERTION', 'CERT_HAS_EXPIRED'],
    ...['ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CERT_UNTRUSTED', '10.1.2.3', ''],
  ].map((code) => [`the code ${JSON.stringify(code)}`, withCode(code)] as const),
  ['a parser', new undiciErrors.HTTPParserError(SAID)],
  ['several addresses', new AggregateError([withCode('ECONNREFUSED'), withCode('ETIMEDOUT')], SAID)],
  ['no error at all', SAID],
]

describe('the sentence about a failed attempt', () => {
  for (const [title, thrown] of THROWN) {
    it(`quotes neither the endpoint nor an address, after ${title}`, () => {
      const { error } = describeError(thrown)
      expect(error).to.match(/^[A-Z].*\.$/)
      expect(error).to.not.match(/10\.1\.2\.3|8443|internal|said-so|ECONN/)
    })
  }

  it('says that a client certificate is wanted, by OpenSSL as by Java', () => {
    for (const alert of ['TLSV13_ALERT_CERTIFICATE_REQUIRED', 'SSLV3_ALERT_BAD_CERTIFICATE']) {
      const refusal = withCode(`ERR_SSL_${alert}`)
      expect(isBrokenTls(refusal)).to.equal(false)
      expect(describeError(refusal))
        .to.include({ failureCode: 'tls_error' })
        .and.have.property('error')
        .that.includes('client certificate')
    }
  })

  it('has our own words for a status', () => {
    for (let status = 100; status <= 599; status++) {
      const words = STATUS_CODES[status] === undefined ? '' : ` ${STATUS_CODES[status]}`
      expect(describeStatus(status).error.replace(' Redirects are not followed.', '')).to.equal(
        `The endpoint answered ${status}${words}.`,
      )
    }
  })
})
