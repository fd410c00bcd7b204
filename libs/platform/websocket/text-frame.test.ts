import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import type { Connection } from './connection.ts';
import { Handshakes } from './handshake.ts';
import { payloadOf, textFrame } from './text-frame.ts';

const server = createServer();
const handshakes = new Handshakes({ maxMessageBytes: 1024, closeTimeoutMs: 1_000 });
const ignored = { onText() {}, onBinary() {}, onControl() {}, onClosed() {} };
let onConnection: (connection: Connection) => void;

beforeAll(async () => {
  server.on('upgrade', (request, socket, head) =>
    handshakes.accept(request, socket, head, undefined, (connection) => {
      setImmediate(onConnection, connection);
      return ignored;
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => void server.close());

/** The messages that a websocket client reads out of these bytes. */
function received(bytes: Buffer): Promise<string[]> {
  onConnection = (connection) => {
    connection.write(bytes);
    connection.end(1000, '');
  };
  const { port } = server.address() as AddressInfo;
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  const texts: string[] = [];
  client.on('message', (data: Buffer, isBinary: boolean) => texts.push(isBinary ? 'binary' : data.toString()));
  return new Promise((resolve, reject) => {
    client.on('error', reject);
    client.on('close', () => resolve(texts));
  });
}

const texts = [0, 1, 125, 126, 65_535, 65_536, 70_000].map((length) => 'x'.repeat(length));

it('frames of every length, joined, are read by a client as they were written', async () => {
  expect(await received(Buffer.concat(texts.map((text) => textFrame(text))))).toEqual(texts);
  expect(await received(textFrame('ü🎈'))).toEqual(['ü🎈']);
});

it('a frame gives its payload back', () => {
  for (const text of texts) expect(payloadOf(textFrame(Buffer.from(text))).toString()).toBe(text);
});
