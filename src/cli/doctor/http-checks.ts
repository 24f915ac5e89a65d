import type { Config } from '../../config/load.ts'
import { defineCheck, type Check, ok, problem } from './check.ts'
import { assertGuardWorks } from '../../outbound/self-test.ts'

/** Checks that private and metadata addresses are refused, and names what opens the policy. */
export function outboundChecks(config: Partial<Config>): Check[] {
  return [
    defineCheck(config, {
      name: 'outbound.guard',
      settings: [],
      failure: 'outbound.guard_broken',
      run: async () => {
        await assertGuardWorks()
        return [ok('outbound.guard', 'loopback and metadata addresses are refused')]
      },
    }),
    defineCheck(config, {
      name: 'outbound.policy',
      settings: ['allowHttp', 'allowedCidrs'],
      failure: 'settings.invalid',
      run: ({ allowHttp, allowedCidrs }) => {
        const where = allowHttp === 'loopback' ? 'on this machine' : 'anywhere'
        const opened = [
          ...(allowHttp === false
            ? []
            : [problem('outbound.http_allowed', `receivers without TLS are allowed ${where}`)]),
          ...(allowedCidrs.length === 0
            ? []
            : [problem('outbound.private_allowed', `allowed: ${allowedCidrs.join(', ')}`)]),
        ]
        const strict = ok('outbound.policy', 'https only, and public addresses only')
        return Promise.resolve(opened.length > 0 ? opened : [strict])
      },
    }),
  ]
}

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
