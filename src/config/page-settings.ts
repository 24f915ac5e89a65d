import { parseFrameAncestors, webAddress } from './parsers.ts'
import { setting } from './setting.ts'

/** The settings of what browsers open, in the order of `.env.example`. */
export const PAGE_SETTINGS = {
  publicUrl: setting(
    'POSTHORN_PUBLIC_URL',
    'address of this service in a browser, such as https://hooks.example.com; notifications and portal links lead to it',
    '',
    webAddress,
  ),
  frameAncestors: setting(
    'POSTHORN_FRAME_ANCESTORS',
    'origins whose pages may embed the developer area, separated by commas, such as https://app.example.com; empty: none',
    '',
    parseFrameAncestors,
  ),
}
