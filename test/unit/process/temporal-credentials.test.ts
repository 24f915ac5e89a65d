import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ConfigError } from '../../../src/config/load.ts'
import { readTemporalCredentials } from '../../../src/process/service-settings.ts'

describe('the credentials for Temporal', () => {
  const none = {
    temporalTlsCaFile: '',
    temporalTlsCertFile: '',
    temporalTlsKeyFile: '',
    temporalApiKey: '',
  }
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-credentials-'))
  const file = (name: string): string => {
    writeFileSync(join(folder, name), name)
    return join(folder, name)
  }
  after(() => rmSync(folder, { recursive: true }))

  it('are none by default', () => {
    expect(readTemporalCredentials(none)).to.deep.equal({ tls: false })
  })

  it('are TLS with public authorities when an API key is given', () => {
    expect(readTemporalCredentials({ ...none, temporalApiKey: 'k' })).to.deep.equal({ tls: {}, apiKey: 'k' })
  })

  it('are TLS with the authority and the certificate of the files', () => {
    const settings = {
      ...none,
      temporalTlsCaFile: file('ca'),
      temporalTlsCertFile: file('cert'),
      temporalTlsKeyFile: file('key'),
    }
    expect(readTemporalCredentials(settings)).to.deep.equal({
      tls: {
        serverRootCACertificate: Buffer.from('ca'),
        clientCertPair: { crt: Buffer.from('cert'), key: Buffer.from('key') },
      },
    })
  })

  it('name every file that cannot be read, and a half that lacks the other', () => {
    const settings = {
      ...none,
      temporalTlsCaFile: join(folder, 'no'),
      temporalTlsCertFile: join(folder, 'no'),
    }
    expect(() => readTemporalCredentials(settings))
      .to.throw(ConfigError)
      .with.property('problems')
      .that.deep.equals([
        'TEMPORAL_TLS_CA_FILE cannot be read (ENOENT)',
        'TEMPORAL_TLS_CERT_FILE cannot be read (ENOENT)',
        'TEMPORAL_TLS_CERT_FILE and TEMPORAL_TLS_KEY_FILE belong together: set both',
      ])
  })
})
