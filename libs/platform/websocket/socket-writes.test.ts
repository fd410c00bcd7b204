import { once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo, type Server } from 'node:net';
import { Writable } from 'node:stream';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { bytesTaken, descriptorOf, drained, writeDirectly } from './socket-writes.ts';

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

/** A connection: the end that writes, and the paused end that reads. */
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
  it('gives the kernel the bytes at once', async () => {
    const { writer, reader, descriptor } = await connection();
    writeDirectly(writer, descriptor, Buffer.from('all of it'));
    // Not through the stream.
    expect([writer.writableLength, writer.bytesWritten]).toEqual([0, 0]);
    writer.end();
    expect(await readToEnd(reader)).toBe('all of it');
  });

  it('keeps the order with writes of the stream, and loses no bytes that the kernel does not take', async () => {
    const { writer, reader, descriptor } = await connection();
    let expected = '';
    for (let index = 0; index < 300; index++) {
      const text = `${index} `.repeat(10_000);
      expected += text;
      if (index % 7 === 3) writer.write(text);
      else writeDirectly(writer, descriptor, Buffer.from(text));
    }
    // More than the kernel buffers: some write was taken in part.
    expect(writer.writableLength).toBeGreaterThan(0);
    expect(writer.writableLength).toBeLessThan(expected.length);
    const read = readToEnd(reader);
    await drained(writer);
    writeDirectly(writer, descriptor, Buffer.from('the last'));
    writer.end();
    expect((await read) === `${expected}the last`).toBe(true);
  });

  it('writes after the bytes of a corked stream', async () => {
    const { writer, reader, descriptor } = await connection();
    writer.cork();
    writer.write('first ');
    writeDirectly(writer, descriptor, Buffer.from('second'));
    writer.uncork();
    writer.end();
    expect(await readToEnd(reader)).toBe('first second');
  });

  it('never writes to a connection that reuses the descriptor of a closed one', async () => {
    const { writer, descriptor } = await connection();
    writer.on('error', () => undefined);
    writer.destroy();
    await once(writer, 'close');
    const others = await Promise.all(Array.from({ length: 8 }, connection));
    const heir = others.find((other) => other.descriptor === descriptor || descriptorOf(other.reader) === descriptor);
    // Otherwise the test shows nothing.
    expect(heir).toBeDefined();
    writeDirectly(writer, descriptor, Buffer.from('not for you'));
    for (const other of others) {
      other.reader.end();
      other.writer.end();
      expect(await Promise.all([readToEnd(other.reader), readToEnd(other.writer)])).toEqual(['', '']);
    }
  });

  it('leaves it to the stream to report that the peer has disconnected', async () => {
    const { writer, reader, descriptor } = await connection();
    const failed = once(writer, 'error');
    reader.resetAndDestroy();
    await once(reader, 'close');
    // Before the event loop has polled the socket: it does not know yet.
    writeDirectly(writer, descriptor, Buffer.from('lost'));
    writeDirectly(writer, descriptor, Buffer.from('lost'));
    const [error] = await failed;
    expect(error).toMatchObject({ code: expect.stringMatching(/^E(PIPE|CONNRESET)$/) });
  });

  it('leaves all bytes to the stream if the kernel refuses the write', async () => {
    const { writer, reader } = await connection();
    const notOpen = 1_000_000;
    writeDirectly(writer, notOpen, Buffer.from('all of it'));
    expect(writer.bytesWritten).toBe('all of it'.length);
    writer.end();
    expect(await readToEnd(reader)).toBe('all of it');
  });

  it('writes through the stream if that may do more than write', async () => {
    class Encrypting extends Socket {}
    const accepted = once(server, 'connection');
    const writer = new Encrypting().connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [reader] = await accepted;
    if (!(reader instanceof Socket)) throw new TypeError('a server accepts sockets');
    open.push(writer, reader);
    await once(writer, 'connect');
    expect(descriptorOf(writer)).toBe(-1);
    writeDirectly(writer, descriptorOf(writer), Buffer.from('through the stream'));
    expect(writer.bytesWritten).toBe('through the stream'.length);
    writer.end();
    expect(await readToEnd(reader)).toBe('through the stream');
  });
});

describe('drained', () => {
  /** A stream whose writes complete when `take` is called. */
  function heldBack(): { stream: Writable; take(): void } {
    const held: (() => void)[] = [];
    const stream = new Writable({ highWaterMark: 100, write: (_chunk, _encoding, done) => void held.push(done) });
    return { stream, take: () => held.shift()?.() };
  }

  it('resolves once all bytes are sent, whether the buffer was full or not', async () => {
    for (const size of [10, 1_000]) {
      const { stream, take } = heldBack();
      stream.write('x'.repeat(size));
      const waiting = drained(stream);
      take();
      // The empty write that follows.
      setImmediate(take);
      await waiting;
      expect(stream.writableLength).toBe(0);
    }
  });

  it('writes nothing to an ended stream, and resolves when it closes', async () => {
    const { stream, take } = heldBack();
    const errors: unknown[] = [];
    stream.on('error', (error) => errors.push(error));
    stream.end('the last words');
    const waiting = drained(stream);
    take();
    await waiting;
    expect(errors).toEqual([]);
    expect(stream.closed).toBe(true);
  });
});

/** Bytes. */
const MORE_THAN_KERNEL_BUFFERS = 64 * 1024 * 1024;

describe('bytes taken by the kernel', () => {
  it('increases within one write while the peer reads, and only then', async () => {
    const { writer: socket, reader: client } = await connection();
    socket.write(Buffer.alloc(MORE_THAN_KERNEL_BUFFERS));
    const first = bytesTaken(socket);
    expect(first).toBeLessThan(MORE_THAN_KERNEL_BUFFERS);
    expect(socket.writableLength).toBe(MORE_THAN_KERNEL_BUFFERS);
    client.resume();
    let read = 0;
    for await (const chunk of client) {
      read += (chunk as Buffer).length;
      if (read > MORE_THAN_KERNEL_BUFFERS / 2) break;
    }
    const later = bytesTaken(socket);
    expect(later).toBeGreaterThan(first);
    expect(later).toBeLessThanOrEqual(MORE_THAN_KERNEL_BUFFERS);
  });
});
