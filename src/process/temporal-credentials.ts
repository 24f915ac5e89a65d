import { readFileSync } from 'node:fs'
import { ConfigError, type Config } from '../config/load.ts'
import type { TemporalCredentials } from '../temporal/temporal-service.ts'

type Settings = Pick<
  Config,
  'temporalTlsCaFile' | 'temporalTlsCertFile' | 'temporalTlsKeyFile' | 'temporalApiKey'
>

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
