import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sign } from '../../src/outbound/signed-headers.ts'
import { freePort } from '../../src/free-port.ts'
import { eventually } from '../helpers/eventually.ts'

type Command = readonly [program: string, ...args: string[]]
type Sample = {
  file: string
  needs: readonly Command[]
  build?: (buildDir: string) => Command
  run: (buildDir: string) => Command
}
type Vector = { title: string; valid: boolean; secret: string; header: string; bodyBase64: string }
type Ended = { code: number | null; stdout: string; stderr: string }

const SAMPLES_DIR = fileURLToPath(new URL('../../docs/verify/', import.meta.url))

/** Compilers are cold on a fresh machine. */
const TIMEOUT_MS = 120_000

/** What is compiled is compiled once: starting it from source for each case would take a second apiece. */
const samples: Sample[] = [
  { file: 'node.mjs', needs: [['node', '--version']], run: () => ['node', 'node.mjs'] },
  { file: 'python.py', needs: [['python3', '--version']], run: () => ['python3', 'python.py'] },
  {
    file: 'go/main.go',
    needs: [['go', 'version']],
    build: (buildDir) => ['go', 'build', '-o', join(buildDir, 'verify'), 'go/main.go'],
    run: (buildDir) => [join(buildDir, 'verify')],
  },
  {
    file: 'Verify.java',
    needs: [
      ['java', '-version'],
      ['javac', '-version'],
    ],
    build: (buildDir) => ['javac', '-d', buildDir, 'Verify.java'],
    run: (buildDir) => ['java', '-cp', buildDir, 'Verify'],
  },
]

const { vectors } = JSON.parse(readFileSync(join(SAMPLES_DIR, 'vectors.json'), 'utf8')) as {
  vectors: Vector[]
}
const cases = vectors.map(({ bodyBase64, ...vector }) => ({
  ...vector,
  body: Buffer.from(bodyBase64, 'base64'),
}))
const secret = '9c1f04b7e2a85d3390ffee12746ab8c0d15e6f2398a4b7c6d0e1f2a3b4c5d6e7'

describe('the verification samples', function () {
  this.timeout(TIMEOUT_MS)

  for (const sample of samples) {
    describe(`docs/verify/${sample.file}`, () => {
      const absent = sample.needs.filter((command) => !isPresent(command)).map(([program]) => program)
      if (absent.length > 0) {
        it.skip(`NOT CHECKED: ${absent.join(' and ')} not found on PATH`)
        return
      }

      let buildDir = ''
      before(async () => {
        buildDir = mkdtempSync(join(tmpdir(), 'verify-sample-'))
        if (sample.build === undefined) return
        const { code, stderr } = await run(sample.build(buildDir))
        expect(code, stderr).to.equal(0)
      })
      after(() => rmSync(buildDir, { recursive: true }))

      for (const { title, valid, secret, header, body } of cases) {
        const verdict = valid ? 'valid' : 'invalid'
        it(`calls ${title} ${verdict}`, async () => {
          const ended = await run([...sample.run(buildDir), secret, header], body)

          expect(ended.stdout.trim(), ended.stderr).to.equal(verdict)
          expect(ended.code).to.equal(valid ? 0 : 1)
        })
      }
    })
  }

  it('are given what Posthorn signs as valid, and nothing else', () => {
    for (const { title, valid, secret, header, body } of cases)
      expect(sign(secret, body) === header, title).to.equal(valid)
  })

  it('are compared with signatures that openssl makes', async function () {
    if (!isPresent(['openssl', 'version'])) this.skip()

    for (const { title, secret, header, body } of cases.filter(({ valid }) => valid)) {
      const { stdout } = await run(['openssl', 'dgst', '-sha256', '-hmac', secret], body)
      expect(`sha256=${stdout.trim().split(' ').at(-1)}`, title).to.equal(header)
    }
  })
})

describe('docs/verify/receiver.mjs', function () {
  this.timeout(TIMEOUT_MS)

  it('handles a valid delivery once, answers a repeat with 200, a wrong signature with 401, a larger body with 413', async () => {
    const port = await freePort()
    const child = spawn(process.execPath, [join(SAMPLES_DIR, 'receiver.mjs')], {
      env: { ...process.env, SECRET: secret, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    const body =
      '{"event":"customer:created","data":{"id":"cus_1"},"timestamp":1,"traceId":"1","triggeredBy":null}'
    const deliver = async (id: string, signature: string): Promise<number> => {
      const headers = { 'X-Webhook-Event-ID': id, 'X-Webhook-Signature': signature }
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })
      return response.status
    }
    const signature = `sha256=${hmacHex(secret, Buffer.from(body))}`
    try {
      await eventually(async () => expect(await deliver('id-1', signature)).to.equal(200), TIMEOUT_MS)
      expect(await deliver('id-1', signature)).to.equal(200)
      expect(await deliver('id-2', `sha256=${'0'.repeat(64)}`)).to.equal(401)
      expect(await deliver('id-3', signature)).to.equal(200)
      const tooLarge = fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        body: Buffer.alloc(1024 * 1024 + 1),
      })
      expect((await tooLarge).status).to.equal(413)
      await eventually(() =>
        expect(output).to.equal(
          'handled id-1: customer:created {"id":"cus_1"}\nhandled id-3: customer:created {"id":"cus_1"}\n',
        ),
      )
    } finally {
      child.kill()
    }
  })

  it('does not start with an empty secret', () => {
    const env = { ...process.env, SECRET: '', PORT: '0' }
    const { status, stderr } = spawnSync(process.execPath, [join(SAMPLES_DIR, 'receiver.mjs')], {
      env,
      timeout: 20_000,
    })
    expect(status, String(stderr)).to.equal(1)
  })
})

describe('docs/verify/README.md', function () {
  this.timeout(TIMEOUT_MS)
  const readme = readFileSync(join(SAMPLES_DIR, 'README.md'), 'utf8')

  it('shows commands that print what it promises', async function () {
    const programs: Command[] = [
      ['sh', '-c', ':'],
      ['openssl', 'version'],
      ...samples.flatMap(({ needs }) => needs),
    ]
    if (!programs.every(isPresent)) this.skip()

    const { stdout, stderr } = await run(['sh', '-c', codeBlock(readme, 'sh')])

    const [openssl, ...verdicts] = stdout.trim().split('\n')
    expect(readme).to.contain(`SIGNATURE=sha256=${openssl!.split(' ').at(-1)!}\n`)
    expect(verdicts, stderr).to.deep.equal(samples.map(() => 'valid'))
  })
})

function hmacHex(key: string, body: Buffer): string {
  return createHmac('sha256', key).update(body).digest('hex')
}

function isPresent([program, ...args]: Command): boolean {
  return spawnSync(program, args).status === 0
}

function run([program, ...args]: Command, input: Buffer = Buffer.alloc(0)): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: SAMPLES_DIR })
    const ended: Ended = { code: null, stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (ended.stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (ended.stderr += chunk))
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...ended, code }))
    // A program that dies before it reads breaks the pipe; its exit code shows that.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
  })
}

function codeBlock(markdown: string, language: string): string {
  const [, code] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(markdown) ?? []
  expect(code, `a code block in ${language}`).to.be.a('string').and.not.equal('')
  return code!
}
