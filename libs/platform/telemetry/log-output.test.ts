import { expect, test } from 'vitest';
import { countingLosses, intoFile } from './logger.ts';

/** A disk with space for a number of bytes. */
function disk(space: number) {
  let content = '';
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  return {
    content: () => content,
    free: (bytes: number) => void (space += bytes),
    write(_fd: number, bytes: Uint8Array, offset: number): number {
      if (space === 0) throw full;
      const part = bytes.subarray(offset, offset + space);
      space -= part.length;
      content += Buffer.from(part).toString();
      return part.length;
    },
  };
}

test('a full disk costs lines of the log, and the first line after it says how many', () => {
  const file = disk(12);
  const output = countingLosses(intoFile(1, file.write));
  for (const line of ['first\n', 'second\n', 'third\n']) output.write(line);
  file.free(1_000);
  output.write('fourth\n');
  output.write('fifth\n');
  const [first, part, loss, ...rest] = file.content().split('\n');
  expect([first, part, ...rest]).toEqual(['first', 'second', 'fourth', 'fifth', '']);
  expect(JSON.parse(loss ?? '')).toMatchObject({ level: 'warn', lost: 2 });
});

test('a line that a file takes in parts is written once', () => {
  const written: string[] = [];
  const inParts = intoFile(1, (_fd, bytes, offset) => {
    const part = bytes.subarray(offset, offset + 3);
    written.push(Buffer.from(part).toString());
    return part.length;
  });
  expect(inParts('a line\n')).toBe(true);
  expect(written.join('')).toBe('a line\n');
});
