import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { findSealedSecret } from '../../src/db/queries/webhooks.ts'
import { TEST_KEY_RING, testSecretBox } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { runCli } from '../helpers/cli/run-cli.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const NEW_KEY = `k2:${'cd'.repeat(32)}`

describe('rotating the encryption key', () => {
  let stage: Stage
  let signingSecret: string

  before(async () => {
    stage = await createStage()
    const { organisationId } = stage.member
    const sealed = await findSealedSecret(stage.dataSource, organisationId, stage.webhookId)
    signingSecret = testSecretBox.open(stage.webhookId, sealed ?? '')
  })
  after(() => stage.close())

  const under = (ring: string) => stage.start({ env: { POSTHORN_ENCRYPTION_KEYS: ring } })
  const command = (ring: string) =>
    runCli(['re-encrypt'], { DATABASE_URL: stage.databaseUrl, POSTHORN_ENCRYPTION_KEYS: ring })
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
})
