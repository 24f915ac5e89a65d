import { expect } from 'chai'
import { assertKeyRing } from '../../../src/process/start-checks.ts'
import { createSecretBox, type SecretBox } from '../../../src/secret-box.ts'
import { testSecretBox } from '../../helpers/database/factories.ts'
import { NEW, onlyNew, rotated, useSealedSecrets } from '../../helpers/database/use-sealed-secrets.ts'

describe('the key ring at the start of a process', () => {
  const { database, webhook, sealedOf, put } = useSealedSecrets()

  const refusalOf = async (box: SecretBox): Promise<string> => {
    try {
      await assertKeyRing(database.dataSource, box)
    } catch (error) {
      return (error as Error).message
    }
    throw new Error('it was not refused')
  }

  it('accepts an empty database, and a ring that opens the stored secrets', async () => {
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
    const message = await refusalOf(createSecretBox([{ id: 'test1', key: NEW.key }]))
    expect(message).to.include('key "test1" does not open it')
    for (const hidden of [signingSecret, 'cd'.repeat(32), 'ab'.repeat(32)])
      expect(message).to.not.include(hidden)
  })

  it('starts in spite of one secret that is damaged or copied', async () => {
    const [one, two] = [await webhook(), await webhook()]
    await put(two.id, await sealedOf(one.id))
    await assertKeyRing(database.dataSource, testSecretBox)
    const copied = await sealedOf(two.id)
    expect(testSecretBox.open(one.id, copied)).to.equal(one.signingSecret)
    expect(() => testSecretBox.open(two.id, copied)).to.throw('for another webhook')
  })
})
