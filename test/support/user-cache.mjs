// What tests fetch or build once for all clones of this user.
import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ofUser = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'parley');
const ofClone = join(dirname(fileURLToPath(import.meta.url)), '../../node_modules/.cache/parley');

/** The folder of this clone serves users without a home that can be written, as in containers. */
export const userCache = isWritable(ofUser) ? ofUser : ofClone;

function isWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
