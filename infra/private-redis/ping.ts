import { connect } from 'node:net';

/**
 * Sends one PING over a new connection, without a client library.
 *
 * @returns true if Redis on that loopback port answers PONG: it has loaded its data, and the password is right
 */
export function pingRedis({
  port,
  password,
  timeoutMs = 1_000,
}: {
  port: number;
  password?: string;
  timeoutMs?: number;
}): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    let received = '';
    const settle = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(timeoutMs, () => settle(false));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
    socket.once('connect', () => socket.write(`${password === undefined ? '' : `AUTH ${password}\r\n`}PING\r\n`));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (received.includes('+PONG')) settle(true);
      else if (received.includes('-')) settle(false);
    });
  });
}
