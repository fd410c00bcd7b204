import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import type { AddressInfo, Server } from 'node:net';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { descriptorOf, writeDirectly } from './direct-write.ts';
import { drained } from './drained.ts';

let server: Server;
const open: Socket[] = [];

beforeEach(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  server.close();
  await once(server, 'close');
});

/** A connection: the end that writes, and the one that reads once it is told to. */
async function connection(): Promise<{ writer: Socket; reader: Socket; descriptor: number }> {
  const accepted = once(server, 'connection');
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [writer] = await accepted;
  if (!(writer instanceof Socket)) throw new TypeError('a server accepts sockets');
  open.push(writer, reader);
  reader.pause();
  return { writer, reader, descriptor: descriptorOf(writer) };
}

async function readToEnd(reader: Socket): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of reader) if (Buffer.isBuffer(part)) parts.push(part);
  return Buffer.concat(parts).toString('latin1');
}

describe('writing directly', () => {
  it('gives the kernel at once what it has room for', async () => {
    const { writer, reader, descriptor } = await connection();
    writeDirectly(writer, descriptor, Buffer.from('all of it'));
    // The stream has not seen it.
    expect([writer.writableLength, writer.bytesWritten]).toEqual([0, 0]);
    writer.end();
    expect(await readToEnd(reader)).toBe('all of it');
  });

  it('keeps the order with writes of the stream, and loses nothing of what the kernel has no room for', async () => {
    const { writer, reader, descriptor } = await connection();
    let expected = '';
    for (let index = 0; index < 300; index++) {
      const text = `${index} `.repeat(10_000);
      expected += text;
      if (index % 7 === 3) writer.write(text);
      else writeDirectly(writer, descriptor, Buffer.from(text));
    }
    // More than a kernel buffers: something was taken in part, and the rest waits.
    expect(writer.writableLength).toBeGreaterThan(0);
    expect(writer.writableLength).toBeLessThan(expected.length);
    const read = readToEnd(reader);
    await drained(writer);
    writeDirectly(writer, descriptor, Buffer.from('the last'));
    writer.end();
    expect((await read) === `${expected}the last`).toBe(true);
  });

  it('writes behind what a corked stream holds back', async () => {
    const { writer, reader, descriptor } = await connection();
    writer.cork();
    writer.write('first ');
    writeDirectly(writer, descriptor, Buffer.from('second'));
    writer.uncork();
    writer.end();
    expect(await readToEnd(reader)).toBe('first second');
  });

  it('never writes to another connection that has got the descriptor of one that is closed', async () => {
    const { writer, descriptor } = await connection();
    writer.on('error', () => undefined);
    writer.destroy();
    await once(writer, 'close');
    const others = await Promise.all(Array.from({ length: 8 }, connection));
    const heir = others.find((other) => other.descriptor === descriptor || descriptorOf(other.reader) === descriptor);
    // Else this shows nothing.
    expect(heir).toBeDefined();
    writeDirectly(writer, descriptor, Buffer.from('not for you'));
    for (const other of others) {
      other.reader.end();
      other.writer.end();
      expect(await Promise.all([readToEnd(other.reader), readToEnd(other.writer)])).toEqual(['', '']);
    }
  });

  it('leaves it to the stream to tell that the other side is gone', async () => {
    const { writer, reader, descriptor } = await connection();
    const failed = once(writer, 'error');
    reader.resetAndDestroy();
    await once(reader, 'close');
    // Before the event loop has looked at the socket: it does not know yet.
    writeDirectly(writer, descriptor, Buffer.from('to nobody'));
    writeDirectly(writer, descriptor, Buffer.from('to nobody'));
    const [error] = await failed;
    expect(error).toMatchObject({ code: expect.stringMatching(/^E(PIPE|CONNRESET)$/) });
  });

  it('leaves what the kernel refuses to the stream, whole', async () => {
    const { writer, reader } = await connection();
    const notOpen = 1_000_000;
    writeDirectly(writer, notOpen, Buffer.from('all of it'));
    expect(writer.bytesWritten).toBe('all of it'.length);
    writer.end();
    expect(await readToEnd(reader)).toBe('all of it');
  });

  it('goes through the stream where the stream may do more than to write', async () => {
    class Encrypting extends Socket {}
    const accepted = once(server, 'connection');
    const writer = new Encrypting().connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [reader] = await accepted;
    if (!(reader instanceof Socket)) throw new TypeError('a server accepts sockets');
    open.push(writer, reader);
    await once(writer, 'connect');
    expect(descriptorOf(writer)).toBe(-1);
    writeDirectly(writer, descriptorOf(writer), Buffer.from('by the stream'));
    expect(writer.bytesWritten).toBe('by the stream'.length);
    writer.end();
    expect(await readToEnd(reader)).toBe('by the stream');
  });
});
