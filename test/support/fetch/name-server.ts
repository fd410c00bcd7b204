/** A name server on a UDP port of 127.0.0.1 (RFC 1035), whose answers tests choose for each query. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

import ipaddr from 'ipaddr.js';

export interface Query {
  /** Lower case. */
  readonly name: string;
  readonly type: 'A' | 'AAAA';
  /** From 0, of this name and type. */
  readonly count: number;
}

/** Addresses of either family; `cname` comes first. Null: no answer at all. */
export type Answer = { readonly addresses: readonly string[]; readonly cname?: string } | null;

export interface NameServer {
  /** `127.0.0.1:port` */
  readonly address: string;
  readonly queries: readonly Query[];
  stop(): Promise<void>;
}

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };
const CNAME = 5;
const NAME_ERROR = 3;

/** @param answerOf undefined: the name does not exist */
export async function startNameServer(answerOf: (query: Query) => Answer | undefined): Promise<NameServer> {
  const socket = createSocket('udp4');
  const queries: Query[] = [];
  socket.on('message', (message, sender) => {
    const { name, typeNumber, end } = questionOf(message);
    const type = TYPES[typeNumber];
    if (type === undefined) return;
    const query = {
      name,
      type,
      count: queries.filter((earlier) => earlier.name === name && earlier.type === type).length,
    };
    queries.push(query);
    const answer = answerOf(query);
    if (answer !== null) socket.send(replyTo(message.subarray(0, end), query, answer), sender.port, sender.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queries,
    async stop() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function questionOf(message: Buffer): { name: string; typeNumber: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), typeNumber: message.readUInt16BE(at + 1), end: at + 5 };
}

/** @param asked header and question of the query */
function replyTo(asked: Buffer, { name, type }: Query, answer: Exclude<Answer, null> | undefined): Buffer {
  const owner = nameBytes(answer?.cname ?? name);
  const wanted = (answer?.addresses ?? [])
    .map((text) => ipaddr.parse(text))
    .filter((address) => (address.kind() === 'ipv4') === (type === 'A'));
  const records = [
    ...(answer?.cname === undefined ? [] : [record(nameBytes(name), CNAME, owner)]),
    ...wanted.map((address) => record(owner, type === 'A' ? 1 : 28, Buffer.from(address.toByteArray()))),
  ];
  const reply = Buffer.concat([asked, ...records]);
  // Response, recursion desired and available.
  reply.writeUInt16BE(0x8180 | (answer === undefined ? NAME_ERROR : 0), 2);
  for (const [index, count] of [1, records.length, 0, 0].entries()) reply.writeUInt16BE(count, 4 + 2 * index);
  return reply;
}

function record(owner: Buffer, type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  // The time to live, 0: nothing may keep the answer.
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, head, data]);
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.of(0)]);
}
