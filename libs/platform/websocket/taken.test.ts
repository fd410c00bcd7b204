import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import { expect, it } from 'vitest';

import { bytesTaken } from './taken.ts';

/** More than the kernel keeps between the two. */
const LARGE = 64 * 1024 * 1024;

it('grows within one write as the peer reads, and stands still while it does not', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  try {
    client.pause();
    socket.write(Buffer.alloc(LARGE));
    const first = bytesTaken(socket);
    expect(first).toBeLessThan(LARGE);
    expect(socket.writableLength).toBe(LARGE);
    client.resume();
    let read = 0;
    for await (const chunk of client) {
      read += (chunk as Buffer).length;
      if (read > LARGE / 2) break;
    }
    const later = bytesTaken(socket);
    expect(later).toBeGreaterThan(first);
    expect(later).toBeLessThanOrEqual(LARGE);
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
});
