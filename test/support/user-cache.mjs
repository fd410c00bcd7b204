// What tests fetch or build once for all clones of this user.
import { homedir } from 'node:os';
import { join } from 'node:path';

export const userCache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'parley');
