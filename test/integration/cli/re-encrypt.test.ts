import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { describeReEncryption, reEncrypt } from '../../../src/cli/re-encrypt.ts'
import { deleteWebhook, findSealedSecret } from '../../../src/db/queries/webhooks.ts'
import { createSecretBox, type SecretBox } from '../../../src/secret-box.ts'
import { openTransaction, untilWaitingForLock } from '../../helpers/database/database.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { OLD, onlyNew, rotated, useSealedSecrets } from '../../helpers/database/use-sealed-secrets.ts'

describe('re-encrypting the signing secrets', () => {
  const secrets = useSealedSecrets()
  const { database, webhook, sealedOf, put } = secrets

  const run = (box: SecretBox) => reEncrypt(database.dataSource, box)
  const rows = () => database.dataSource.query<object[]>('SELECT * FROM webhook ORDER BY id')

  it('seals every secret with the newest key, unchanged, and changes nothing else of a webhook', async () => {
    const { dataSource } = database
    const webhooks = [await webhook(), await webhook(), await webhook()]
    const withoutSecret = `SELECT to_jsonb(w) - 'secret' AS row FROM webhook w ORDER BY id`
    const before = await dataSource.query<object[]>(withoutSecret)
    expect(await run(rotated)).to.deep.equal({ changed: 3, unopened: [], left: [] })
    for (const { id, signingSecret } of webhooks)
      expect(onlyNew.open(id, await sealedOf(id))).to.equal(signingSecret)
    expect(await dataSource.query<object[]>(withoutSecret)).to.deep.equal(before)
  })

  it('processes several batches of every organisation', async () => {
    await webhook()
    const other = await createMember(database.dataSource)
    await createWebhookRow(database.dataSource, { ...other, url: 'https://receiver.example.com/' })
    // Sealed for no real webhook: they only have to be skipped, in several batches.
    await database.dataSource.query(
      `INSERT INTO webhook (id, organisation_id, url, subscribed_event_keys, enabled, secret)
       SELECT uuidv7(), $1, 'https://receiver.example.com/', '{*}', true, 'test1|x|y|z' FROM generate_series(1, 450)`,
      [secrets.organisationId],
    )
    await Promise.all([webhook(), webhook()])
    const { changed, unopened, left } = await run(rotated)
    expect([changed, unopened.length, left]).to.deep.equal([4, 450, [{ keyId: 'test1', count: 450 }]])
  })

  it('changes nothing the second time, not even the sealed texts', async () => {
    await Promise.all([webhook(), webhook()])
    await run(rotated)
    const before = await rows()
    expect(await run(rotated)).to.deep.equal({ changed: 0, unopened: [], left: [] })
    expect(await rows()).to.deep.equal(before)
  })

  it('is harmless next to a concurrent run', async () => {
    const webhooks = await Promise.all(Array.from({ length: 30 }, webhook))
    const outcomes = await Promise.all([run(rotated), run(rotated), run(rotated)])
    expect(outcomes.reduce((sum, { changed }) => sum + changed, 0)).to.equal(30)
    for (const outcome of outcomes) expect(outcome).to.deep.include({ unopened: [], left: [] })
    for (const { id, signingSecret } of webhooks)
      expect(onlyNew.open(id, await sealedOf(id))).to.equal(signingSecret)
  })

  it('continues where a run was interrupted', async () => {
    const webhooks = await Promise.all([webhook(), webhook(), webhook()])
    // The sample of the newest key, the first batch, two secrets.
    const cutOff = await reEncrypt(dyingAfter(database.dataSource, 4), rotated).catch(String)
    expect(cutOff).to.equal('Error: connection lost')
    expect(await run(rotated)).to.deep.equal({ changed: 1, unopened: [], left: [] })
    for (const { id, signingSecret } of webhooks)
      expect(onlyNew.open(id, await sealedOf(id))).to.equal(signingSecret)
  })

  it('skips a webhook that is deleted between reading and writing', async () => {
    const [first, second] = [await webhook(), await webhook()]
    const { dataSource } = database
    // Its lock makes the order certain: the run has read both, and waits for the deletion to commit.
    const deleting = await openTransaction(dataSource)
    await deleteWebhook(deleting.manager, secrets.organisationId, second.id)
    const running = run(rotated)
    await untilWaitingForLock(dataSource)
    await deleting.commitTransaction()
    await deleting.release()
    expect(await running).to.deep.equal({ changed: 1, unopened: [], left: [] })
    expect(await findSealedSecret(dataSource, secrets.organisationId, second.id)).to.equal(null)
    const [row] = await database.dataSource.query<{ secret: null }[]>(
      'SELECT secret FROM webhook WHERE id = $1',
      [second.id],
    )
    expect(row).to.deep.equal({ secret: null })
    expect(onlyNew.open(first.id, await sealedOf(first.id))).to.equal(first.signingSecret)
  })

  it('names the webhook of each secret that does not open, skips it, and continues', async () => {
    const [copied, lost, garbled, clear, good] = [
      await webhook(),
      await webhook(),
      await webhook(),
      await webhook(),
      await webhook(),
    ]
    const gone = createSecretBox([{ id: 'k0', key: Buffer.alloc(32, 7) }])
    await put(copied.id, await sealedOf(good.id))
    await put(lost.id, gone.seal(lost.id, lost.signingSecret))
    await put(garbled.id, 'test1|x|y|z')
    await put(clear.id, clear.signingSecret)
    const outcome = await run(rotated)
    expect(outcome.changed).to.equal(1)
    expect(onlyNew.open(good.id, await sealedOf(good.id))).to.equal(good.signingSecret)
    expect(outcome.unopened).to.deep.equal([
      {
        webhookId: copied.id,
        reason:
          'key "test1" does not open it: it was sealed with another key or for another webhook, or changed',
      },
      { webhookId: lost.id, reason: 'the key ring holds no key "k0"' },
      { webhookId: garbled.id, reason: 'not a sealed secret' },
      { webhookId: clear.id, reason: 'not a sealed secret' },
    ])
    expect(outcome.left).to.have.deep.members([
      { keyId: 'k0', count: 1 },
      { keyId: 'test1', count: 2 },
      { keyId: null, count: 1 },
    ])
    const told = describeReEncryption(outcome, 'k2')
    expect(told.lines).to.include('Left under key "k0": 1').and.include('Left that name no key: 1')
    expect(told.problems).to.have.length(4)
    for (const { signingSecret } of [copied, lost, clear])
      expect(JSON.stringify([outcome, told])).to.not.include(signingSecret)
  })

  it('reports secrets that were sealed with another key meanwhile', () => {
    const told = describeReEncryption({ changed: 5, unopened: [], left: [{ keyId: 'k1', count: 1 }] }, 'k2')
    expect(told.lines).to.deep.equal(['Re-encrypted with key "k2": 5', 'Left under key "k1": 1'])
    expect(told.problems.join()).to.include('a process still seals with it')
  })

  it('changes nothing when the newest key has the name of another key that sealed secrets', async () => {
    const { id, signingSecret } = await webhook()
    await run(rotated)
    await webhook()
    const before = await rows()
    const wrong = createSecretBox([{ id: 'k2', key: Buffer.alloc(32, 9) }, OLD])
    const error = await run(wrong).catch((failure: unknown) => failure as Error)
    expect(error).to.be.instanceOf(Error).with.property('message').that.includes('"k2"')
    expect(await rows()).to.deep.equal(before)
    expect(onlyNew.open(id, await sealedOf(id))).to.equal(signingSecret)
  })
})

/** A pool whose connection is gone from the statement of this number on. */
function dyingAfter(dataSource: DataSource, statements: number): DataSource {
  let made = 0
  const query = (sql: string, parameters: unknown[]): Promise<unknown> => {
    if (++made > statements) return Promise.reject(new Error('connection lost'))
    return dataSource.query(sql, parameters)
  }
  return Object.create(dataSource, { query: { value: query } }) as DataSource
}
