import { expect } from 'chai'
import { createStack } from '../../../src/process/process-end.ts'
import { useMockTime } from '../../helpers/use-mock-time.ts'

describe('createStack', () => {
  const time = useMockTime()
  const never = (): Promise<void> => new Promise(() => undefined)

  it('stops in reverse order, and continues after a failure', async () => {
    const stack = createStack()
    const stopped: string[] = []
    stack.push('first', () => Promise.resolve(stopped.push('first')))
    stack.push('broken', () => Promise.reject(new Error('it is stuck')))
    stack.push('last', () => Promise.resolve(stopped.push('last')))
    expect(await stack.stop()).to.deep.equal(['broken: it is stuck'])
    expect(stopped).to.deep.equal(['last', 'first'])
  })

  it('stops concurrently what was pushed together', async () => {
    const stack = createStack()
    let release: () => void = () => undefined
    stack.pushTogether({
      waiting: () => new Promise<void>((resolve) => (release = resolve)),
      async releasing() {
        await Promise.resolve()
        release()
      },
    })
    expect(await stack.stop()).to.deep.equal([])
  })

  it('waits no longer than its limit in total, and still stops the parts after one that hangs', async () => {
    const stack = createStack()
    let isStopped = false
    stack.push('last', () => {
      isStopped = true
      return Promise.resolve()
    })
    stack.push('hanging', never)
    stack.push('hanging too', never)
    const startedAt = performance.now()
    const problems = await time.until(stack.stop(50))
    expect(problems).to.deep.equal(['hanging too: it took too long', 'hanging: it took too long'])
    expect(performance.now() - startedAt).to.be.below(1_000)
    expect(isStopped).to.equal(true)
  })
})
