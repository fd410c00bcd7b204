/** HTTP proxy in front of an S3 server. It holds, cuts and falsifies what tests choose; signatures stay valid. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface S3Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One request of the client, and how to answer it. */
export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly incoming: IncomingMessage;
  readonly reply: ServerResponse;
  /** Sends the request to the server. @returns its whole answer */
  forward(): Promise<S3Answer>;
}

export type Behaviour = (exchange: Exchange) => unknown;

export interface S3Proxy {
  readonly endpoint: string;
  /** Operations that were requested, oldest first. */
  readonly arrived: Operation[];
  /** Holds the next such request. */
  hold(isIt: (method: string, url: string) => boolean): { readonly arrived: Promise<'arrived'>; release(): void };
  /** Gives requests for this operation to `behaviour`, instead of earlier ones, at most `times`. */
  behave(operation: Operation, behaviour: Behaviour, times?: number): void;
  /** Forwards all requests again. */
  forwardAll(): void;
  stop(): Promise<void>;
}

/** Of S3, on an object or on the bucket. */
export type Operation = 'get' | 'put' | 'head' | 'delete' | 'list';

function operationOf(method: string, url: string): Operation {
  return url.includes('list-type=2') ? 'list' : (method.toLowerCase() as Operation);
}

interface Rule {
  isIt(method: string, url: string): boolean;
  readonly behaviour: Behaviour;
  times: number;
}

/** @param target `http://127.0.0.1:PORT` */
export async function startS3Proxy(target: string): Promise<S3Proxy> {
  let rules: Rule[] = [];
  const arrived: Operation[] = [];
  const server = createServer(async (incoming, reply) => {
    const { method = '', url = '', headers } = incoming;
    arrived.push(operationOf(method, url));
    const rule = rules.find((one) => one.times > 0 && one.isIt(method, url));
    if (rule === undefined) return pass(target, incoming, reply);
    rule.times -= 1;
    await rule.behaviour({ method, url, headers, incoming, reply, forward: () => forward(target, incoming) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    hold(isIt) {
      const met = Promise.withResolvers<'arrived'>();
      const released = Promise.withResolvers<void>();
      const behaviour: Behaviour = async ({ incoming, reply }) => {
        met.resolve('arrived');
        await released.promise;
        pass(target, incoming, reply);
      };
      rules.unshift({ isIt, behaviour, times: 1 });
      return { arrived: met.promise, release: released.resolve };
    },
    behave(operation, behaviour, times = Infinity) {
      rules.unshift({ isIt: (method, url) => operationOf(method, url) === operation, behaviour, times });
    },
    forwardAll() {
      rules = [];
    },
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function pass(target: string, incoming: IncomingMessage, reply: ServerResponse): void {
  const { method, url, headers } = incoming;
  const outgoing = request(`${target}${url}`, { method, headers }, (answer) => {
    reply.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(reply);
  });
  outgoing.on('error', () => reply.destroy());
  incoming.pipe(outgoing);
}

async function forward(target: string, incoming: IncomingMessage): Promise<S3Answer> {
  const { method, url, headers } = incoming;
  const outgoing = request(`${target}${url}`, { method, headers });
  incoming.pipe(outgoing);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 500, headers: answer.headers, body: await buffer(answer) };
}

/** Answers by itself, as a proxy or another implementation does. Takes the content of the request first. */
export function answers(status: number, body: Buffer | string, headers: Record<string, string> = {}): Behaviour {
  return ({ method, incoming, reply }) => {
    incoming.resume();
    reply.writeHead(status, { 'content-length': `${Buffer.byteLength(body)}`, ...headers });
    reply.end(method === 'HEAD' ? '' : body);
  };
}

/** The server's answer with another content: of the length that it declares, and ends properly. */
export function changes(change: (body: Buffer) => Buffer): Behaviour {
  return async ({ reply, forward: whole }) => {
    const { status, headers, body } = await whole();
    const changed = change(body);
    reply.writeHead(status, { ...headers, 'content-length': `${changed.length}` }).end(changed);
  };
}

/** Half of the content, in chunks without a declared length: it ends properly. */
export const endsEarly: Behaviour = async ({ reply, forward: whole }) => {
  const { status, headers, body } = await whole();
  const { 'content-length': _, ...others } = headers;
  reply.writeHead(status, others).end(body.subarray(0, body.length >> 1));
};

/** Half of the content, and then a reset of the connection. */
export const isCut: Behaviour = async ({ reply, forward: whole }) => {
  const { status, headers, body } = await whole();
  reply.writeHead(status, headers);
  reply.write(body.subarray(0, body.length >> 1), () => setImmediate(() => reply.socket?.resetAndDestroy()));
};

/** Half of the content, and then no byte more. */
export const stalls: Behaviour = async ({ reply, forward: whole }) => {
  const { status, headers, body } = await whole();
  reply.writeHead(status, headers);
  reply.write(body.subarray(0, body.length >> 1));
};

/** Half of the content, and then one byte every few milliseconds. */
export const trickles: Behaviour = async ({ reply, forward: whole }) => {
  const { status, headers, body } = await whole();
  reply.writeHead(status, headers);
  let at = body.length >> 1;
  reply.write(body.subarray(0, at));
  const timer = setInterval(() => reply.write(body.subarray(at, (at += 1))), 20);
  reply.once('close', () => clearInterval(timer));
};

/** One bit of the last byte differs. */
export const flips: Behaviour = changes((body) => {
  const changed = Buffer.from(body);
  const last = changed.length - 1;
  changed[last] = (changed[last] ?? 0) ^ 1;
  return changed;
});

/** Connection reset after some bytes of the request's content. */
export const resetsRequest: Behaviour = ({ incoming }) => {
  incoming.once('data', () => incoming.socket.resetAndDestroy());
};

const DOCUMENT = '<?xml version="1.0" encoding="UTF-8"?>';

/** The document of an S3 error. */
export function s3Error(code: string, message: string, members = ''): string {
  return `${DOCUMENT}\n<Error><Code>${code}</Code><Message>${message}</Message>${members}<RequestId>1</RequestId></Error>`;
}
