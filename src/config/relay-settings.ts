import { integer, operatorSecret, optionalDatabaseUrl, secretSetting, setting } from './parsers.ts'

/** What only `posthorn relay` and `posthorn doctor` read, in the order of `.env.example`. */
export const RELAY_SETTINGS = {
  relayDatabaseUrl: secretSetting(
    'RELAY_DATABASE_URL',
    "for posthorn relay: your platform's PostgreSQL 15 to 18 with the outbox, itself and not behind a pooler",
    '',
    optionalDatabaseUrl,
  ),
  relayOperatorKey: secretSetting(
    'RELAY_OPERATOR_KEY',
    'for posthorn relay: the secret of an operator key with the scope publish',
    '',
    operatorSecret,
  ),
  relayKeepHours: setting(
    'RELAY_KEEP_HOURS',
    'for posthorn relay: hours that published rows are kept in the outbox; 0 deletes them at once',
    '0',
    integer(0, 87_600),
  ),
}
