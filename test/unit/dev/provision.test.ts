import { expect } from 'chai'
import { provision } from '../../../src/dev/provision.ts'
import type { Way } from '../../../src/dev/provision.ts'

describe('provision', () => {
  it('returns the first path that works and tries none after it', async () => {
    const tried: string[] = []
    const path = await provision({
      what: 'Temporal',
      ways: [fails('first', tried), succeeds('second', tried), succeeds('third', tried)],
      waysOut: [],
    })
    expect(path).to.equal('/bin/second')
    expect(tried).to.deep.equal(['first', 'second'])
  })

  it('names every way, why it failed, and every workaround', async () => {
    const throws: Way = {
      name: 'a build',
      attempt: () => Promise.reject(new Error('exit code 2: no compiler')),
    }
    const message = await refusal(
      [fails('a download', []), throws],
      ['install a compiler', 'set ENGINE=path'],
    )
    expect(message).to.equal(
      [
        'Cannot get Temporal. Tried:',
        '  - a download: not there',
        '  - a build: exit code 2: no compiler',
        'What helps, any one of these:',
        '  - install a compiler',
        '  - set ENGINE=path',
      ].join('\n'),
    )
  })

  it('stops after a final failure', async () => {
    const tried: string[] = []
    const wrong: Way = {
      name: 'ENGINE',
      attempt: () => Promise.resolve({ why: 'no such file', isFinal: true }),
    }
    const message = await refusal([wrong, succeeds('cache', tried)], [])
    expect(message).to.include('ENGINE: no such file')
    expect(tried).to.deep.equal([])
  })
})

function fails(name: string, tried: string[]): Way {
  return { name, attempt: () => (tried.push(name), Promise.resolve({ why: 'not there' })) }
}

function succeeds(name: string, tried: string[]): Way {
  return { name, attempt: () => (tried.push(name), Promise.resolve({ path: `/bin/${name}` })) }
}

async function refusal(ways: Way[], waysOut: string[]): Promise<string> {
  return provision({ what: 'Temporal', ways, waysOut }).then(
    (path) => expect.fail(`got ${path}`),
    (error: unknown) => (error as Error).message,
  )
}
