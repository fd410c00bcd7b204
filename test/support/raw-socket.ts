/** Sends raw bytes to a server, for requests that no HTTP client would send. */
import { connect } from 'node:net';

/**
 * Writes the parts one after the other and returns everything received until the server closed the connection, or
 * until `until` matched.
 * @throws Error when neither has happened after `timeoutMs` (default 20,000)
 */
export function exchangeBytes(
  port: number,
  parts: readonly (string | Buffer)[],
  { until, everyMs = 0, timeoutMs = 20_000 }: { until?: RegExp; everyMs?: number; timeoutMs?: number } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const left = [...parts];
    const socket = connect({ host: '127.0.0.1', port });
    const late = setTimeout(() => end(new Error(`the connection is still open; received: ${received}`)), timeoutMs);
    let dripping: NodeJS.Timeout | undefined;

    function end(error?: Error): void {
      clearTimeout(late);
      clearInterval(dripping);
      socket.destroy();
      if (error) reject(error);
      else resolve(received);
    }
    function writeNext(): void {
      const part = left.shift();
      if (part !== undefined && socket.writable) socket.write(part);
    }

    socket.on('connect', () => {
      if (everyMs > 0) dripping = setInterval(writeNext, everyMs);
      else while (left.length > 0) writeNext();
    });
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (until?.test(received)) end();
    });
    // A client that is cut off while it writes gets an error before the end: both mean the end.
    socket.on('error', () => undefined);
    socket.on('close', () => end());
  });
}

/** Status codes of the answers in the received text. */
export function statusesIn(received: string): number[] {
  return [...received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));
}
