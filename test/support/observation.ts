/** Reads a system after a load: the whole log, and every channel as REST shows it. */
import type { ApiClient } from './api-client.ts';
import { answerOf } from './channel-load.ts';
import { eventually } from './eventually.ts';
import type { Operation, ReadChannel } from './history.ts';
import type { Observation } from './history-checker.ts';
import { asRecord, readLog, type LogEvent } from './log-reader.ts';

/** Call it after all writers have stopped. Waits until the read models have reached the end of the log. */
export async function observe(
  operations: readonly Operation[],
  {
    eventstoreUrl,
    api,
    readWith = api,
    isOwn = () => true,
  }: {
    readonly eventstoreUrl: string;
    /** Of a process with a projector, which reports the position of the read models. */
    readonly api: ApiClient;
    readonly readWith?: ApiClient;
    /** Which events belong to the operations; all of them by default. */
    readonly isOwn?: (event: LogEvent) => boolean;
  },
): Promise<Observation> {
  await eventually(async () => {
    const { status, text } = await api.get('/health/ready');
    if (status !== 200 || !text.includes('"caught_up":true')) throw new Error(`not ready: ${text}`);
  });
  const log = (await readLog(eventstoreUrl, 'channel-')).filter(isOwn);
  // While read models are being rebuilt, a list is answered 503, and this retries it.
  const listed = await eventually(() => listChannels(readWith), { timeoutMs: 30_000 });
  return { operations, log, reads: await readChannels(readWith, log), listed };
}

async function readChannels(api: ApiClient, log: readonly LogEvent[]): Promise<Map<string, ReadChannel>> {
  const ids = [...new Set(log.map(({ stream }) => stream.slice('channel-'.length)))];
  const reads = new Map<string, ReadChannel>();
  for (let first = 0; first < ids.length; first += 20) {
    const replies = await Promise.all(ids.slice(first, first + 20).map((id) => api.get(`/api/v1/channels/${id}`)));
    for (const reply of replies) {
      if (reply.status !== 200) continue;
      const { channelId, ...read } = answerOf(reply);
      reads.set(channelId, read);
    }
  }
  return reads;
}

/** All channels, newest first, page by page. */
export async function listChannels(api: ApiClient, size = 100): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: unknown = ''; typeof cursor === 'string';) {
    const reply = await api.get(`/api/v1/channels?size=${size}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    if (reply.status !== 200) throw new Error(`the list answers ${reply.status} ${reply.text}`);
    const { items, meta } = asRecord(reply.json());
    if (!Array.isArray(items)) throw new TypeError('a page without items');
    ids.push(...items.map((item) => String(asRecord(item)['id'])));
    cursor = asRecord(meta)['next_cursor'];
  }
  return ids;
}
