import { spawnSync } from 'node:child_process'

/** User and group that PostgreSQL runs as; empty where this process is no root and PostgreSQL runs as it. */
export type PostgresUser = { uid?: number; gid?: number }

const USER_NAME = 'postgres'

/**
 * PostgreSQL refuses to run as root: root hands it to the system user `postgres`, created when it is missing.
 *
 * @throws Error when that user can neither be found nor created
 */
export function providePostgresUser(print: (line: string) => void): PostgresUser {
  if (process.getuid?.() !== 0) return {}
  const found = findUser()
  if (found !== null) return found
  print(`Creating the system user ${USER_NAME}: PostgreSQL refuses to run as root …`)
  const flags = ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false']
  const { error, stderr } = spawnSync('/usr/sbin/useradd', [...flags, USER_NAME], { encoding: 'utf8' })
  const created = findUser()
  if (created !== null) return created
  const why = error?.message ?? stderr.trim()
  throw new Error(
    `PostgreSQL refuses to run as root, and the user ${USER_NAME} could not be created (${why}). ` +
      `Create a system user ${USER_NAME}, or run as another user than root.`,
  )
}

/** Whether that user may enter the folder, through every folder above it. */
export function canEnter(folder: string, user: PostgresUser): boolean {
  // The server runs as this process then, which finds out itself.
  if (user.uid === undefined) return true
  // Asked of the system itself, since groups and access lists count too.
  const { status } = spawnSync('/bin/sh', ['-c', 'cd "$0"', folder], { ...user, cwd: '/', stdio: 'ignore' })
  return status === 0
}

function findUser(): Required<PostgresUser> | null {
  const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, USER_NAME], { encoding: 'utf8' }))
  if (uid?.status !== 0 || gid?.status !== 0) return null
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}
