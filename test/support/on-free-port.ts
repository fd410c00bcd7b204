import { freePort } from '#infra/private-redis/free-port.ts';

const MOST_TRIES = 5;

/** Starts a server on a free port. Tries further ones, because another test may take a port before the server does. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (tries === MOST_TRIES) throw error;
    }
  }
}
