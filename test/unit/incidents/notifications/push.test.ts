import { expect } from 'chai'
import webPush from 'web-push'
import { createPusher, vapidPublicKey } from '../../../../src/incidents/notifications/push.ts'

const httpClient = { post: () => Promise.reject(new Error('nothing is sent here')) }

describe('vapidPublicKey', () => {
  it('matches the public half of each key pair', () => {
    for (let count = 0; count < 50; count += 1) {
      const { privateKey, publicKey } = webPush.generateVAPIDKeys()
      expect(vapidPublicKey(privateKey)).to.equal(publicKey)
    }
  })

  it('is the application server key that browsers subscribe with', () => {
    const { privateKey, publicKey } = webPush.generateVAPIDKeys()
    expect(createPusher({ privateKey, subject: 'mailto:a@b.eu', httpClient }).publicKey).to.equal(publicKey)
  })
})

describe('createPusher', () => {
  const { privateKey } = webPush.generateVAPIDKeys()

  it('refuses an invalid key', () => {
    for (const key of [
      '',
      'AAAA',
      Buffer.alloc(32).toString('base64url'),
      Buffer.alloc(32, 255).toString('base64url'),
    ]) {
      expect(() => createPusher({ privateKey: key, subject: 'mailto:a@b.eu', httpClient }), key).to.throw()
    }
  })

  it('refuses a subject that is neither a mail address nor a URL', () => {
    for (const subject of ['', 'admin', 'http://example.com']) {
      expect(() => createPusher({ privateKey, subject, httpClient }), subject).to.throw()
    }
  })
})
