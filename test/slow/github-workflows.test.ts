import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { NEWER_NODES, OLDER_RELEASES } from '../../src/dev/npm-programs.ts'
import { readDocument } from '../helpers/documents/documents.ts'
import { PROVIDE_TIMEOUT_MS, provideActionlint } from '../helpers/manifests/go-tools.ts'
import { runProgram } from '../helpers/manifests/run-program.ts'

type Workflow = { jobs: Record<string, { strategy?: { matrix: Record<string, number[]> } }> }

describe('the workflows for GitHub', () => {
  it('pass actionlint', async function () {
    this.timeout(PROVIDE_TIMEOUT_MS)
    const actionlint = await provideActionlint()
    if (actionlint === null) return this.skip()
    const cwd = fileURLToPath(new URL('../../', import.meta.url))
    const files = ['test', 'release'].map((name) => `.github/workflows/${name}.yml`)
    expect(runProgram(actionlint, files, { cwd })).to.include({ status: 0, stdout: '', stderr: '' })
  })

  it('test on every supported release of Node.js and PostgreSQL', () => {
    const { jobs } = parse(readDocument('.github/workflows/test.yml')) as Workflow
    expect(jobs['node']?.strategy?.matrix).to.deep.equal({ node: [20, ...NEWER_NODES] })
    expect(jobs['postgres']?.strategy?.matrix).to.deep.equal({ postgres: OLDER_RELEASES })
  })
})
