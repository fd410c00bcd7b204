import { connect } from 'node:net';

const TIMEOUT_MS = 1_000;

export interface RedisAddress {
  /** On the loopback interface. */
  readonly port: number;
  readonly password?: string;
}

/** @returns true if Redis answers PONG: it has loaded its data, and the password is right */
export async function pingRedis(address: RedisAddress): Promise<boolean> {
  return (await askRedis(address, 'PING')) === '+PONG';
}

/**
 * Sends one command without line breaks over a new connection, without a client library.
 *
 * @returns the first line of its reply, which begins with `-` for an error; null if Redis does not answer
 */
export function askRedis({ port, password }: RedisAddress, command: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const awaited = password === undefined ? 1 : 2;
    let received = '';
    const settle = (reply: string | null): void => {
      socket.destroy();
      resolve(reply);
    };
    socket.setTimeout(TIMEOUT_MS, () => settle(null));
    socket.once('error', () => settle(null));
    socket.once('close', () => settle(null));
    socket.once('connect', () => socket.write(`${password === undefined ? '' : `AUTH ${password}\r\n`}${command}\r\n`));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const lines = received.split('\r\n').slice(0, -1);
      if (lines[0]?.startsWith('-')) settle(lines[0]);
      else if (lines.length >= awaited) settle(lines[awaited - 1] ?? null);
    });
  });
}
