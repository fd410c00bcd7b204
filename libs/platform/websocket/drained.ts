import type { Writable } from 'node:stream';

type Drainable = Pick<
  Writable,
  'destroyed' | 'writableEnded' | 'writableLength' | 'writableNeedDrain' | 'on' | 'off' | 'write'
>;

/** Resolves when nothing of what was written is unsent any more, or the stream is closed. Never rejects. */
export async function drained(stream: Drainable): Promise<void> {
  if (stream.destroyed || stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('close', done);
    // Nothing more may be written: it closes when all is sent.
    if (stream.writableEnded) return;
    // Where no write has said "enough" there is no `drain`; an empty write comes back behind the others.
    if (stream.writableNeedDrain) stream.on('drain', done);
    else stream.write('', done);
  });
}
