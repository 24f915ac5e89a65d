import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keepInFile } from './data-folder.ts'

/** A mail as the mailbox shows it: envelope recipient, text part, HTML part if any, ISO 8601 UTC time of arrival. */
export type Mail = { to: string; subject: string; text: string; html: string | null; receivedAt: string }

export type MailFolder = {
  keep(mail: Mail): void
  newestFirst(): Mail[]
}

const MAX_MAILS = 200

/** Names count up, so that they sort by arrival even when the clock is set back. */
const NAME = /^\d{12}\.json$/

/**
 * Mails as one JSON file each. Keeps the newest 200; skips a file that contains no mail.
 */
export function openMailFolder(folder: string): MailFolder {
  const names = (): string[] => {
    // Each time: removing the folder empties the mailbox while it runs.
    mkdirSync(folder, { recursive: true })
    return readdirSync(folder)
      .filter((name) => NAME.test(name))
      .sort()
  }
  let latest = Number.parseInt(names().at(-1) ?? '0', 10)
  return {
    keep(mail) {
      const existing = names()
      latest += 1
      keepInFile(join(folder, `${String(latest).padStart(12, '0')}.json`), JSON.stringify(mail))
      const surplus = existing.slice(0, Math.max(0, existing.length + 1 - MAX_MAILS))
      for (const name of surplus) rmSync(join(folder, name), { force: true, recursive: true })
    },
    newestFirst: () =>
      names()
        .reverse()
        .flatMap((name) => readMail(join(folder, name)) ?? []),
  }
}

function readMail(file: string): Mail | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return isMail(value) ? value : null
  } catch {
    return null
  }
}

function isMail(value: unknown): value is Mail {
  if (typeof value !== 'object' || value === null) return false
  const { to, subject, text, html, receivedAt } = value as Partial<Record<keyof Mail, unknown>>
  const isText = [to, subject, text, receivedAt].every((field) => typeof field === 'string')
  return isText && (html === null || typeof html === 'string')
}
