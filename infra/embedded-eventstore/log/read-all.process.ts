// Reads every row of the log whose file is the argument: exit code 0 if that is possible and each event is the one that
// its key names. See `damage.ts`.
import { open } from 'lmdb';
import { StoredEvent } from './stored-event.ts';

const [file = ''] = process.argv.slice(2);
const root = open({ path: file, readOnly: true });
const bytes = { encoding: 'binary', keyEncoding: 'binary' } as const;
// All names first: a table cannot be opened while a range is read.
const names = [...root.getKeys()];
for (const name of names) {
  const table = root.openDB<Buffer, Buffer>(String(name), bytes);
  for (const { key, value } of table.getRange()) {
    // Where LMDB keeps a long value, it trusts the page, which may be lost.
    const isLost = name === 'log' && new StoredEvent(value).position !== positionOf(key);
    if (isLost) throw new Error(`the event ${positionOf(key)} is lost`);
    value.at(-1);
  }
}
await root.close();

function positionOf(key: Buffer): number {
  return key.readUInt32BE(0) * 2 ** 32 + key.readUInt32BE(4);
}
