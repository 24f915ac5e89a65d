import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { assertKeyRing } from '../../src/cli/assert-key-ring.ts'
import { findSealedSecret } from '../../src/db/queries/webhooks.ts'
import { createSecretBox, type SecretBox } from '../../src/secret-box.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts'
import { createMember, createWebhookRow, TEST_KEY_RING, testSecretBox } from '../helpers/factories.ts'
import type { PosthornProcess } from '../helpers/posthorn.ts'
import { runCli } from '../helpers/run-cli.ts'
import { createStage, type Stage } from '../helpers/stage.ts'

const NEW_KEY = `k2:${'cd'.repeat(32)}`
const next = { id: 'k2', key: Buffer.from('cd'.repeat(32), 'hex') }
const rotated = createSecretBox([next, { id: 'test1', key: Buffer.from('ab'.repeat(32), 'hex') }])
const onlyNew = createSecretBox([next])

describe('the key ring at the start of a process', () => {
  let database: TestDatabase
  let organisationId: string

  beforeEach(async () => {
    database = await createTestDatabase()
    organisationId = (await createMember(database.dataSource)).organisationId
  })
  afterEach(() => database.drop())

  const webhook = () =>
    createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })
  const sealedOf = async (id: string): Promise<string> =>
    (await findSealedSecret(database.dataSource, organisationId, id)) ?? ''
  const put = (id: string, secret: string) =>
    database.dataSource.query('UPDATE webhook SET secret = $2 WHERE id = $1', [id, secret])
  const refusalOf = async (box: SecretBox): Promise<string> => {
    try {
      await assertKeyRing(database.dataSource, box)
    } catch (error) {
      return (error as Error).message
    }
    throw new Error('it was not refused')
  }

  it('passes an empty database, and a ring that opens what is there', async () => {
    await assertKeyRing(database.dataSource, onlyNew)
    await webhook()
    await assertKeyRing(database.dataSource, testSecretBox)
    await assertKeyRing(database.dataSource, rotated)
  })

  it('refuses a ring that lacks a key, and names each that is missing', async () => {
    const lost = await webhook()
    await webhook()
    await put(lost.id, createSecretBox([{ id: 'k0', key: Buffer.alloc(32, 7) }]).seal(lost.id, 'x'))
    const message = await refusalOf(onlyNew)
    expect(message).to.match(/^POSTHORN_ENCRYPTION_KEYS does not open the signing secrets/)
    expect(message).to.include('the key ring holds no key "k0"').and.include('no key "test1"')
  })

  it('refuses a key with other bytes under the same id, and shows none of them', async () => {
    const { signingSecret } = await webhook()
    const message = await refusalOf(createSecretBox([{ id: 'test1', key: next.key }]))
    expect(message).to.include('key "test1" does not open it')
    for (const hidden of [signingSecret, 'cd'.repeat(32), 'ab'.repeat(32)])
      expect(message).to.not.include(hidden)
  })

  it('does not keep everybody waiting for one secret that is damaged or copied', async () => {
    const [one, two] = [await webhook(), await webhook()]
    await put(two.id, await sealedOf(one.id))
    await assertKeyRing(database.dataSource, testSecretBox)
    const copied = await sealedOf(two.id)
    expect(testSecretBox.open(one.id, copied)).to.equal(one.signingSecret)
    expect(() => testSecretBox.open(two.id, copied)).to.throw('for another webhook')
  })
})

describe('rotating the encryption key', function () {
  this.timeout(120_000)
  let database: TestDatabase
  let stage: Stage
  let signingSecret: string

  before(async () => {
    database = await createTestDatabase()
    stage = await createStage({ database })
    const { organisationId } = stage.member
    const sealed = await findSealedSecret(stage.dataSource, organisationId, stage.webhookId)
    signingSecret = testSecretBox.open(stage.webhookId, sealed ?? '')
  })
  after(() => stage.close())

  const under = (ring: string) => stage.start({ env: { POSTHORN_ENCRYPTION_KEYS: ring } })
  const command = (ring: string) =>
    runCli(['re-encrypt'], { DATABASE_URL: database.url, POSTHORN_ENCRYPTION_KEYS: ring })
  const expectSigned = async (posthorn: PosthornProcess): Promise<void> => {
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    const [post] = stage.receiver.postsOf(deliveryId)
    const signature = String(post?.headers['x-webhook-signature'])
    expect(await verify(signingSecret, String(post?.body), signature)).to.equal(true)
  }
  const revealed = async (posthorn: PosthornProcess): Promise<unknown> => {
    const { organisationId, apiKey } = stage.member
    const path = `/api/orgs/${organisationId}/webhooks/${stage.webhookId}/signing-secret`
    return (await posthorn.call('GET', path, { apiKey })).json
  }

  it('signs as before under the old ring, the new one, during the change and without the old key', async () => {
    const withBoth = await under(`${NEW_KEY},${TEST_KEY_RING}`)
    await expectSigned(withBoth)
    expect(await command(`${NEW_KEY},${TEST_KEY_RING}`)).to.deep.equal({
      code: 0,
      stdout: 'Re-encrypted with key "k2": 1\nLeft under other keys: none\n',
      stderr: '',
    })
    await expectSigned(withBoth)
    expect(await withBoth.stop()).to.equal(0)
    const withoutOld = await under(NEW_KEY)
    await expectSigned(withoutOld)
    expect(await revealed(withoutOld)).to.deep.equal({ signingSecret })
    expect(withoutOld.log()).to.not.include(signingSecret)
    await withoutOld.stop()
  })

  it('says that there is nothing to do the second time', async () => {
    expect(await command(NEW_KEY)).to.deep.equal({
      code: 0,
      stdout: 'Re-encrypted with key "k2": 0\nLeft under other keys: none\n',
      stderr: '',
    })
  })

  it('lets no process start under the ring of before, and says why', async () => {
    const { code, stdout, stderr } = await runCli(['worker'], {
      DATABASE_URL: database.url,
      POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
    })
    expect(code).to.equal(1)
    expect(stderr).to.include('POSTHORN_ENCRYPTION_KEYS').and.include('the key ring holds no key "k2"')
    expect(stdout + stderr).to.not.match(/[0-9a-f]{64}/)
  })

  it('ends with 1 and the id of each webhook whose secret does not open', async () => {
    const { code, stdout, stderr } = await command(TEST_KEY_RING)
    expect([code, stdout]).to.deep.equal([1, 'Re-encrypted with key "test1": 0\nLeft under key "k2": 1\n'])
    expect(stderr).to.equal(
      `The signing secret of webhook ${stage.webhookId} does not open: the key ring holds no key "k2"\n`,
    )
  })

  it('takes no arguments', async () => {
    const { code, stderr } = await runCli(['re-encrypt', 'k1'])
    expect(code).to.equal(2)
    expect(stderr).to.include('posthorn re-encrypt cannot be called like this:\n  - it takes no arguments')
  })
})
