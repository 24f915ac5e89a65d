import { expect } from 'chai'
import { unbounded } from '../../helpers/deliveries/attempts.ts'
import type { People } from '../../helpers/notifications/addressed-incident.ts'
import type { Channels } from '../../../src/incidents/notifications/send-due.ts'
import { FAILED, SENT, useSending } from '../../helpers/notifications/use-sending.ts'

const ORGANISATION = 'info@zon.example'
const AN = 'an@zon.example'
const BO = 'bo@zon.example'
const TWO: People = { email: ORGANISATION, members: [{ email: AN }] }

describe('recipients of notifications', () => {
  const sending = useSending()

  describe('the recipients', () => {
    it('is the address for support where there is one, else the general one', async () => {
      await sending.addressed({ email: ORGANISATION, supportEmail: 'help@zon.example' })
      await sending.send()
      expect(sending.handed).to.deep.equal(['help@zon.example'])
      await sending.addressed({ email: ORGANISATION, supportEmail: null })
      await sending.send()
      expect(sending.handed).to.deep.equal(['help@zon.example', ORGANISATION])
    })

    it('is every member that may change the settings, and no other', async () => {
      await sending.addressed({
        email: ORGANISATION,
        members: [{ email: AN }, { email: BO, mayChange: false }],
      })
      await sending.send()
      expect(sending.handed).to.have.members([ORGANISATION, AN])
    })

    it('includes once an address that several share, however it is spelt', async () => {
      const members = [{ email: 'Info@Zon.example' }, { email: 'AN@zon.example' }, { email: AN }]
      await sending.addressed({ email: ORGANISATION, members })
      expect(await sending.incident.rows()).to.have.length(2)
      await sending.send()
      expect(sending.handed.map((to) => to.toLowerCase())).to.have.members([ORGANISATION, AN])
    })

    it('is not a member that has lost the permission meanwhile', async () => {
      await sending.addressed(TWO)
      await sending.incident.people({ email: ORGANISATION, members: [{ email: AN, mayChange: false }] })
      await sending.send()
      expect(sending.handed).to.deep.equal([ORGANISATION])
      expect(await sending.incident.row(AN)).to.include({ state: 'failed', error: 'no longer a recipient' })
      await sending.incident.people(TWO)
      await sending.send()
      expect(sending.handed).to.deep.equal([ORGANISATION])
    })

    it('is not an address that the organisation has given up meanwhile', async () => {
      await sending.addressed(TWO)
      await sending.incident.people({ email: 'new@zon.example' })
      await sending.send()
      expect(sending.handed).to.deep.equal([AN])
      expect(await sending.states()).to.deep.equal({ [ORGANISATION]: 'failed', [AN]: 'sent' })
    })

    it('is still a member whose address the organisation shared, when it changes its own', async () => {
      await sending.addressed({ email: 'An@Zon.example', members: [{ email: AN }] })
      await sending.incident.people({ email: ORGANISATION })
      await sending.send()
      expect(sending.handed.map((to) => to.toLowerCase())).to.deep.equal([AN])
    })

    it('is the member, by name, and the organisation without one', async () => {
      const named: (string | null)[] = []
      await sending.addressed({ email: ORGANISATION, members: [{ email: AN, name: 'An' }] })
      const email: Channels['email'] = {
        limiter: unbounded,
        send: (_notice, { name }) => Promise.resolve(SENT).finally(() => named.push(name)),
      }
      await sending.send({ channels: { email, push: null } })
      expect(named).to.have.members([null, 'An'])
    })
  })

  describe('push messages', () => {
    it('go to every browser of the members that have push enabled, and to no other', async () => {
      const members = [
        { email: AN, pushEnabled: true, browsers: 2 },
        { email: BO, pushEnabled: false, browsers: 1 },
        { email: 'cas@zon.example', pushEnabled: true, browsers: 1, mayChange: false },
      ]
      await sending.addressed({ email: ORGANISATION, members })
      await sending.send()
      expect(sending.handed).to.have.members([
        ORGANISATION,
        AN,
        BO,
        ...(await sending.incident.browsersOf(AN)),
      ])
    })

    it('are not sent to a member who has switched push off, or a browser that was removed, meanwhile', async () => {
      const members = [
        { email: AN, pushEnabled: true, browsers: 1 },
        { email: BO, pushEnabled: true, browsers: 1 },
      ]
      await sending.addressed({ email: ORGANISATION, members })
      const [removed] = await sending.incident.browsersOf(BO)
      await sending.incident.people({ email: ORGANISATION, members: [{ email: AN, pushEnabled: false }] })
      await sending.run('DELETE FROM push_subscription WHERE id = $1', removed)
      await sending.send()
      expect(sending.handed).to.have.members([ORGANISATION, AN, BO])
    })

    it('make us forget a browser that is gone, and no other', async () => {
      await sending.addressed({
        email: ORGANISATION,
        members: [{ email: AN, pushEnabled: true, browsers: 2 }],
      })
      const [gone, here] = await sending.incident.browsersOf(AN)
      sending.answer = (to) => (to === gone ? { ...FAILED, isObsolete: true } : SENT)
      await sending.send()
      expect(await sending.incident.browsersOf(AN)).to.deep.equal([here])
      expect(await sending.states()).to.include({ [gone!]: 'failed', [here!]: 'sent' })
    })
  })
})
