/** Writers that append events of many types to channels, through any of the nodes that are alive. */
import { setTimeout as delay } from 'node:timers/promises';

import { NoReplyError, type ApiClient, type Reply } from '#test/support/api-client.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { asRecord } from '#test/support/log-reader.ts';

export interface ChannelWriters {
  /** Number of acknowledged writes. */
  acknowledged(): number;
  /** Responses that no failure of a store or a node explains. */
  readonly unexpected: readonly string[];
  stop(): Promise<void>;
}

export interface WritersOptions {
  readonly nodes: () => readonly ApiClient[];
  readonly channels: readonly string[];
  readonly writers: number;
  readonly seed: number;
  /** Pause of a writer between two writes. */
  readonly thinkMs: number;
}

const EXPLAINED = new Set([409, 503]);

export function startWriters({ nodes, channels, writers, seed, thinkMs }: WritersOptions): ChannelWriters {
  const unexpected: string[] = [];
  const end = new AbortController();
  let [acknowledged, count] = [0, 0];

  async function write(writer: number): Promise<void> {
    const random = randomFrom(seed * 1_000 + writer);
    /** Paths of this writer's incomplete interactions. */
    const open: string[] = [];
    let last: Posted | undefined;
    while (!end.signal.aborted) {
      const channel = channels[random(channels.length)] ?? '';
      const among = nodes();
      const node = among[random(among.length)];
      if (node === undefined) throw new TypeError('there must be a node to write to');
      count += 1;
      try {
        const reply = await one(node, { channel, dice: random(10), text: `text ${seed}/${count}`, open, last });
        if (reply.status === 200 || reply.status === 201) {
          acknowledged += 1;
          last = postedIn(reply) ?? last;
        } else if (!EXPLAINED.has(reply.status)) unexpected.push(`${reply.status} ${reply.text}`);
      } catch (error) {
        if (!(error instanceof NoReplyError)) throw error;
        await delay(50);
      }
      await delay(thinkMs);
    }
  }
  const all = Array.from({ length: writers }, (_, writer) => write(writer));
  return {
    acknowledged: () => acknowledged,
    unexpected,
    async stop() {
      end.abort();
      await Promise.all(all);
    },
  };
}

interface Posted {
  readonly path: string;
  readonly channel: string;
  readonly spanId: string;
}

function postedIn(reply: Reply): Posted | undefined {
  const { id, channel_id: channel, span_id: spanId } = asRecord(reply.json());
  if (typeof id !== 'string' || typeof channel !== 'string' || typeof spanId !== 'string') return undefined;
  return { path: `/api/v1/interactions/${id}`, channel, spanId };
}

interface Write {
  readonly channel: string;
  readonly dice: number;
  readonly text: string;
  readonly open: string[];
  readonly last: Posted | undefined;
}

async function one(node: ApiClient, { channel, dice, text, open, last }: Write): Promise<Reply> {
  const content = [{ type: 'text', text }];
  const post = (body: object, to = channel) => node.post(`/api/v1/channels/${to}/interactions`, { content, ...body });
  if (dice === 0) return node.patch(`/api/v1/channels/${channel}`, { name: text });
  if (dice === 1 && last !== undefined)
    return node.request('PUT', `${last.path}/reactions/${encodeURIComponent('👍')}`);
  if (dice === 2) {
    const reply = await post({ complete: false });
    const posted = reply.status === 200 ? postedIn(reply) : undefined;
    if (posted !== undefined) open.push(posted.path);
    return reply;
  }
  const unfinished = open[0];
  if (dice === 3 && unfinished !== undefined) return node.post(`${unfinished}/content`, { content });
  if (dice === 4 && unfinished !== undefined) {
    open.shift();
    return node.post(`${unfinished}/complete`, { content });
  }
  if (dice === 5 && last !== undefined) return post({ parent_span_id: last.spanId }, last.channel);
  return post({});
}
