import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports of outgoing connections (from 32,768 on Linux, from 49,152 elsewhere), which may be taken at any
 * moment, for example while a server that listened there restarts.
 */
const [FIRST, END] = [20_000, 32_000];
const MOST_TRIES = 100;

/**
 * A loopback port that was free when it was checked; another process may take it before it is used.
 *
 * @throws Error if none is found
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port on 127.0.0.1 from ${FIRST} to ${END - 1}`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
