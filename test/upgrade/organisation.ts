export const API_KEY = 'phk_upgrade_Wq7ZrT5n_in_clear_0001_kP3x'

/** A seed file of one organisation, whose member's key is known. */
export const SEED = {
  organisations: [
    {
      id: 'org_upgrade',
      name: 'Upgrade',
      email: 'info@upgrade.example',
      supportEmail: null,
      timeZone: 'Europe/Brussels',
      members: [
        {
          id: 'mem_upgrade',
          name: 'Uma',
          email: 'uma@upgrade.example',
          fullAccess: true,
          pushEnabled: false,
          apiKeys: [{ name: 'upgrade', key: API_KEY }],
        },
      ],
    },
  ],
}
