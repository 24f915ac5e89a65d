import packageJson from '../../package.json' with { type: 'json' }

/** The `User-Agent` of every POST to a receiver. */
export const USER_AGENT = `Posthorn/${packageJson.version}`
