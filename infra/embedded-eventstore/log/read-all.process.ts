// Reads every row of the log whose file is the argument: exit code 0 if that is possible. See `damage.ts`.
import { open } from 'lmdb';

const [file = ''] = process.argv.slice(2);
const root = open({ path: file, readOnly: true });
const bytes = { encoding: 'binary', keyEncoding: 'binary' } as const;
// All names first: a table cannot be opened while a range is read.
const names = [...root.getKeys()];
for (const name of names) {
  const table = root.openDB<Buffer, Buffer>(String(name), bytes);
  for (const { value } of table.getRange()) value.at(-1);
}
await root.close();
