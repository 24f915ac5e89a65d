import { readFileSync, statSync } from 'node:fs'
import { ConfigError, type Config } from '../config/load.ts'
import type { Brand } from '../http/pages/brand.ts'
import type { TemporalCredentials } from '../temporal/temporal-service.ts'

export const BRAND_SETTINGS = ['brandName', 'brandLogoFile', 'brandAccentColor'] as const

/** Every page shows it, at most 56 pixels high. */
const MAX_LOGO_BYTES = 256 * 1024

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/** Reads how the pages present themselves. Throws ConfigError where the file of the logo cannot be used. */
export function readBrand(config: Pick<Config, (typeof BRAND_SETTINGS)[number]>): Brand {
  const { brandName: name, brandLogoFile: path, brandAccentColor: accentColor } = config
  if (path === '') return { name, accentColor, logo: null }
  const body = readLogo(path)
  if (body.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE))
    return { name, accentColor, logo: { body, extension: 'png' } }
  // An SVG in another encoding than UTF-8 is refused too.
  if (!/^\uFEFF?\s*<(?:[?!][^]*<)?svg[\s>]/.test(body.toString())) throw unusable('is neither SVG nor PNG')
  return { name, accentColor, logo: { body, extension: 'svg' } }
}

function readLogo(path: string): Buffer {
  try {
    const stats = statSync(path)
    // Reading a pipe might never end.
    if (!stats.isFile()) throw unusable('is not a file')
    if (stats.size > MAX_LOGO_BYTES) throw unusable(`is larger than ${MAX_LOGO_BYTES / 1024} KiB`)
    return readFileSync(path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw unusable(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
  }
}

function unusable(reason: string): ConfigError {
  return new ConfigError([`BRAND_LOGO_FILE ${reason}`])
}

export const CREDENTIAL_SETTINGS = [
  'temporalTlsCaFile',
  'temporalTlsCertFile',
  'temporalTlsKeyFile',
  'temporalApiKey',
] as const

type Settings = Pick<Config, (typeof CREDENTIAL_SETTINGS)[number]>

/** Reads the files of certificates and keys. Throws ConfigError naming each that cannot be read, or lacks its other half. */
export function readTemporalCredentials(settings: Settings): TemporalCredentials {
  const problems: string[] = []
  const read = (variable: string, path: string): Buffer | null => {
    if (path === '') return null
    try {
      return readFileSync(path)
    } catch (error) {
      problems.push(`${variable} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
      return null
    }
  }
  const serverRootCACertificate = read('TEMPORAL_TLS_CA_FILE', settings.temporalTlsCaFile)
  const crt = read('TEMPORAL_TLS_CERT_FILE', settings.temporalTlsCertFile)
  const key = read('TEMPORAL_TLS_KEY_FILE', settings.temporalTlsKeyFile)
  if ((settings.temporalTlsCertFile === '') !== (settings.temporalTlsKeyFile === ''))
    problems.push('TEMPORAL_TLS_CERT_FILE and TEMPORAL_TLS_KEY_FILE belong together: set both')
  if (problems.length > 0) throw new ConfigError(problems)

  const { temporalApiKey: apiKey } = settings
  const files = {
    ...(serverRootCACertificate === null ? {} : { serverRootCACertificate }),
    ...(crt === null || key === null ? {} : { clientCertPair: { crt, key } }),
  }
  const isTls = apiKey !== '' || Object.keys(files).length > 0
  return { tls: isTls ? files : false, ...(apiKey === '' ? {} : { apiKey }) }
}
