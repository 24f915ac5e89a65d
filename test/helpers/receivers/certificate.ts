import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export type Certificate = { key: string; cert: string; /** Path for NODE_EXTRA_CA_CERTS. */ file: string }

/** A certificate for `localhost` that a process trusts when NODE_EXTRA_CA_CERTS names its file. */
export async function createCertificate(): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] },
    ],
  })
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-certificate-')), 'ca.pem')
  writeFileSync(file, made.cert)
  return { key: made.private, cert: made.cert, file }
}
