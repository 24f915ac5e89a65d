import { Type } from 'typebox'
import { PORTAL_PATH_PATTERN } from '../../accounts/portal-links.ts'
import { timestamp } from './common.ts'

/** Long enough for a redirect and a slow page, too short to be of use to who finds the link later. */
export const MAX_LINK_SECONDS = 300

export const CreatePortalLinkSchema = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        title: 'PortalPath',
        maxLength: 200,
        default: '/',
        examples: ['/webhooks'],
        documented: { pattern: PORTAL_PATH_PATTERN },
        description:
          'Where it leads, within /developer: `/`, `/webhooks`, `/webhooks/{id}` or `/webhooks/{id}/deliveries/{deliveryId}`',
      }),
    ),
    expiresInSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LINK_SECONDS,
        default: MAX_LINK_SECONDS,
        description: 'How long the link can be opened',
      }),
    ),
  },
  { title: 'CreatePortalLink', additionalProperties: false },
)

export const PortalLinkSchema = Type.Object(
  {
    url: Type.String({
      description: 'For the browser of this member only: opens the developer area, once. Shown this once',
      examples: ['https://hooks.example.com/developer#portal=Zk3vXy0pQm'],
    }),
    expiresAt: timestamp('2026-05-04T08:05:00.000Z'),
  },
  { title: 'PortalLink' },
)

export const OpenPortalLinkSchema = Type.Object(
  {
    token: Type.String({
      maxLength: 200,
      description: 'What follows `#portal=` in the link',
      examples: ['Zk3vXy0pQm'],
    }),
    replace: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'The user has confirmed that the member of the link takes the place of who is signed in',
      }),
    ),
  },
  { title: 'OpenPortalLink', additionalProperties: false },
)

export const OpenedPortalLinkSchema = Type.Object(
  { address: Type.String({ description: 'Where the link leads, on this host', examples: ['/developer'] }) },
  { title: 'OpenedPortalLink' },
)
