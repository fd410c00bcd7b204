// The only user of an event store. Its name and password are in a file of the
// data folder, with the same permissions as the events.
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CannotStartError } from './data-folder.ts';

export const CREDENTIALS_FILE = 'credentials';
const CONTENT = /^(?<username>[^\s:]+):(?<password>\S+)\n?$/;

export type Credentials = { username: string; password: string };

/**
 * Reads the credentials in the folder, or generates them at the first start.
 * @throws CannotStartError when the file is not one line `name:password`; Error of the file system
 */
export function credentialsOf(dataDir: string): Credentials {
  const file = join(dataDir, CREDENTIALS_FILE);
  if (!existsSync(file)) return generate(file);
  const { username, password } = CONTENT.exec(readFileSync(file, 'utf8'))?.groups ?? {};
  if (username === undefined || password === undefined) {
    throw new CannotStartError(`${file} must be one line, name:password; remove it to generate new ones`);
  }
  chmodSync(file, 0o600);
  return { username, password };
}

function generate(file: string): Credentials {
  const credentials = { username: 'parley', password: randomBytes(24).toString('hex') };
  // The rename makes it atomic. The caller holds the lock of the folder.
  const next = `${file}.next`;
  writeFileSync(next, `${credentials.username}:${credentials.password}\n`, { mode: 0o600 });
  chmodSync(next, 0o600);
  renameSync(next, file);
  return credentials;
}
