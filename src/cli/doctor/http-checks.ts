import type { Config } from '../../config/load.ts'
import { defineCheck, type Check } from './check.ts'
import { ok, problem } from './finding.ts'

/** Checks that the proxy is trusted which has to be in front of the API: Posthorn itself speaks plain HTTP. */
export function httpChecks(config: Partial<Config>): Check[] {
  return [
    defineCheck(config, {
      name: 'http.proxy',
      settings: ['publicUrl', 'trustedProxies'],
      failure: 'settings.invalid',
      run: ({ publicUrl, trustedProxies }) => {
        const isUntrusted = publicUrl.startsWith('https:') && trustedProxies.length === 0
        const trusted = trustedProxies.length === 0 ? 'no proxy' : trustedProxies.join(', ')
        const finding = isUntrusted
          ? problem('http.proxy_untrusted', 'POSTHORN_PUBLIC_URL is https, and TRUSTED_PROXIES is empty')
          : ok('http.proxy', `trusted: ${trusted}`)
        return Promise.resolve([finding])
      },
    }),
  ]
}
