/**
 * Users with hashed passwords in a broker. kafkajs cannot add them, and a process of Kafka's own command for each
 * mechanism takes a second of processor time: this is the request that the command sends.
 */
import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';

const MECHANISMS = [
  { code: 1, hash: 'sha256', bytes: 32 },
  { code: 2, hash: 'sha512', bytes: 64 },
] as const;
const ITERATIONS = 4096;

/** `AlterUserScramCredentials` of the Kafka protocol, version 0. */
const API = Buffer.of(0, 51, 0, 0);
const CORRELATION = int32(1);
const NO_CLIENT = Buffer.of(0xff, 0xff);
const NO_TAGS = Buffer.of(0);
/** The correlation, no tags, no delay and one result. */
const RESULT_AT = 4 + 1 + 4 + 1;

/**
 * Adds a user that authenticates by SCRAM-SHA-256 and SCRAM-SHA-512.
 * @param port of a listener without authentication
 */
export async function addScramUser(port: number, username: string, password: string): Promise<void> {
  // Kafka takes one mechanism of a user at a time.
  for (const mechanism of MECHANISMS) await addMechanism(mechanism, port, username, password);
}

async function addMechanism(
  { code, hash, bytes }: (typeof MECHANISMS)[number],
  port: number,
  username: string,
  password: string,
): Promise<void> {
  const [user, salt] = [compact(username), randomBytes(32)];
  const salted = pbkdf2Sync(password, salt, ITERATIONS, bytes, hash);
  const added = [user, Buffer.of(code), int32(ITERATIONS), compact(salt), compact(salted), NO_TAGS];
  const request = [API, CORRELATION, NO_CLIENT, NO_TAGS, lengthOf(0), lengthOf(1), ...added, NO_TAGS];
  const result = (await exchange(port, Buffer.concat(request))).subarray(RESULT_AT);
  const error = result.readInt16BE(user.length);
  if (error !== 0) throw new Error(`Kafka refuses a user with error ${error}: ${result.toString('latin1')}`);
}

/** Sends a request on a connection of its own. @returns its response; both without their lengths */
async function exchange(port: number, request: Buffer): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(Buffer.concat([int32(request.length), request]));
  let received = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer]);
    if (received.length >= 4 && received.length >= 4 + received.readInt32BE()) return received.subarray(4);
  }
  throw new Error('Kafka closed the connection');
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** One more than the length, because zero is null; of less than 127 bytes or items. */
const lengthOf = (length: number): Buffer => Buffer.of(length + 1);

function compact(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([lengthOf(bytes.length), bytes]);
}
