import { integer } from './parsers.ts'
import { setting } from './setting.ts'

/** The settings of the rate limits, in the order of `.env.example`. */
export const RATE_LIMIT_SETTINGS = {
  rateLimitManagement: setting(
    'RATE_LIMIT_MANAGEMENT',
    'requests per API key, operator key or signed-in member within ten seconds, without published events; 0 for no limit',
    '1000',
    integer(0, 1_000_000),
  ),
  rateLimitPublish: setting(
    'RATE_LIMIT_PUBLISH',
    'events published per API key or operator key within ten seconds; 0 for no limit',
    '0',
    integer(0, 1_000_000),
  ),
}
