import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'

type Samples = Record<'BODY' | 'SECRET' | 'SIGNATURE', string>
type Request = { method: string; url: string; headers: Record<string, string>; body: string }
type Curl = { shellQuoted: (text: string) => string; curlCommand: (request: Request) => string }

/** It runs in browsers; its types are checked there. */
const module = new URL('../../../src/web/pages/docs/request.js', import.meta.url).href
const { BODY, SECRET, SIGNATURE, shellQuoted, curlCommand } = (await import(module)) as Samples & Curl

describe('the samples of /docs', () => {
  it('show a delivery whose signature is right', () => {
    expect(SIGNATURE).to.equal(`sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`)
  })
})

/** What a shell gives to curl. */
function argumentsOf(command: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}\n`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1)
}

describe('a request as a curl command', () => {
  it('gives curl the request as it is, whatever is in it', () => {
    const nasty = `'; touch /tmp/x; ' "$(id)" \`id\` \\ !! \n\t%0A{a,b}[1-3] é 🎺`
    const url = `https://hooks.example.com/in?x=${nasty.replaceAll('\n', '')}`
    const headers = { 'Content-Type': 'application/json', 'X-Webhook-Signature': nasty.replaceAll('\n', ' ') }
    const command = curlCommand({ method: 'POST', url, headers, body: `@${nasty}` })
    expect(argumentsOf(command)).to.deep.equal([
      '--globoff',
      '--request',
      'POST',
      url,
      ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
      '--data-raw',
      `@${nasty}`,
    ])
  })

  it('quotes any text as one word', () => {
    const text = fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0'))
    const words = fc.sample(text, 50)
    expect(argumentsOf(`curl ${words.map((word) => shellQuoted(word)).join(' ')}`)).to.deep.equal(words)
  })
})
