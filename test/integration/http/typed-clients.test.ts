import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@hey-api/openapi-ts'
import { expect } from 'chai'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { createMember } from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** As strict as TypeScript can be, without the checks of unused names, which generated files have. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: true,
  noEmit: true,
  types: ['node'],
}

describe('clients generated from the OpenAPI document', () => {
  const suite = useApi()
  let folder: string
  let types: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-clients-'))
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    const document = join(folder, 'openapi.json')
    writeFileSync(document, (await suite.api.call('GET', '/openapi.json')).text)
    types = astToString(await openapiTS(pathToFileURL(document)))
    writeFileSync(join(folder, 'schema.d.ts'), types)
    await createClient({
      input: document,
      output: { path: join(folder, 'hey-api'), importFileExtension: '.js' },
      logs: { level: 'silent' },
    })
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  function compile(program: string): string[] {
    copyFileSync(join(ROOT, 'test/fixtures/clients', program), join(folder, program))
    const host = ts.createCompilerHost(OPTIONS)
    host.getCurrentDirectory = () => folder
    const compiled = ts.createProgram([join(folder, program)], OPTIONS, host)
    return ts
      .getPreEmitDiagnostics(compiled)
      .map(
        ({ file, messageText }) =>
          `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
      )
  }

  it('have no object without fields among their types', () => {
    // The generator writes this line for every document that has no definitions of its own.
    const own = types.replace('export type $defs = Record<string, never>;', '')
    expect(own).to.not.include('Record<string, never>')
  })

  for (const program of ['openapi-fetch.ts', 'hey-api.ts']) {
    it(`${program}: creates, publishes, lists, retries and reads a received event, strictly typed`, async () => {
      expect(compile(program)).to.deep.equal([])
      const member = await createMember(suite.database.dataSource)
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--import', pathToFileURL(join(ROOT, 'node_modules/tsx/dist/esm/index.mjs')).href, program],
        {
          cwd: folder,
          env: {
            ...process.env,
            API_URL: suite.api.url,
            API_KEY: member.apiKey,
            ORG_ID: member.organisationId,
          },
        },
      )
      expect(JSON.parse(stdout)).to.deep.equal({
        secret: 64,
        deliveries: [true],
        delivery: 'invoice:paid',
        completedAt: null,
        retried: 202,
        total: 0,
        codes: ['invalid_fields', ['/data/payment/id']],
        described: 'inv_1 12.5',
      })
    })
  }
})
