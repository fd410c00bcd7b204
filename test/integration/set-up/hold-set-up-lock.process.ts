/**
 * Takes the set-up's lock again and again; prints a line when another process holds it at the same time. Arguments:
 * the folder, the count, and whether to die while holding it in the last turn.
 */
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { withSetUpLock } from '#infra/set-up/lock.mjs';

const [, , root = '', times = '1', dies = 'no'] = process.argv;
const inside = join(root, 'inside');

for (let turn = 1; turn <= Number(times); turn++) {
  await withSetUpLock(
    root,
    async () => {
      try {
        mkdirSync(inside);
      } catch {
        process.stdout.write('two at once\n');
      }
      for (let wait = 0; wait < 20; wait++) await nextTurn();
      rmdirSync(inside);
      process.stdout.write('had it\n');
      if (dies === 'dies' && turn === Number(times)) process.kill(process.pid, 'SIGKILL');
    },
    { everyMs: 1 },
  );
}
