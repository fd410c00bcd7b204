/* Two gateways on the same stores: a write that one acknowledged is valid for the other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '#test/support/api-client.ts';
import { answerOf, startChannelLoad } from '#test/support/channel-load.ts';
import { eventually } from '#test/support/eventually.ts';
import { problemsOf } from '#test/support/history-checker.ts';
import { readLog } from '#test/support/log-reader.ts';
import { observe } from '#test/support/observation.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import { startNodeHere, startTwoNodes, type TwoNodes } from '#test/support/realtime/nodes.ts';

let nodes: TwoNodes;
let eventStore: TwoNodes['eventStore'];
let one: ParleyHere;
let other: ParleyHere;

beforeAll(async () => {
  // The other gateway has no projector: everything that it reads was applied by one of the two.
  nodes = await startTwoNodes(startNodeHere);
  ({ eventStore, one, other } = nodes);
});

afterAll(() => nodes?.stop(), 40_000);

let names = 0;
const newName = (): string => `name ${++names}`;

async function createChannel(api: ApiClient = one.api): Promise<string> {
  return answerOf(await api.post('/api/v1/channels', { name: newName(), participants: [] })).channelId;
}

const eventsOf = (id: string) => readLog(eventStore.url, `channel-${id}`);

describe('two gateways', () => {
  it('keep every write to a hot channel once, in one order that both show', async () => {
    const load = startChannelLoad({ clients: [one.api, other.api], writers: 12, seed: 7, thinkMs: 0 });
    await eventually(() => load.acknowledged() > 300, { timeoutMs: 60_000 });
    await load.stop(5_000);
    const { operations } = load;
    for (const api of [one.api, other.api]) {
      const observation = await observe(operations, { eventstoreUrl: eventStore.url, api: one.api, readWith: api });
      expect(problemsOf(observation)).toEqual([]);
    }
    const refused = operations.flatMap(({ attempts }) => attempts).filter(({ outcome }) => outcome !== 'acknowledged');
    expect(refused.map(({ detail }) => detail).filter((detail) => detail !== '409 conflict')).toEqual([]);
  }, 120_000);

  it('show each other’s writes to a reader that sends the position', async () => {
    const id = await createChannel();
    for (let n = 0; n < 100; n++) {
      const [writer, reader] = n % 2 === 0 ? [one, other] : [other, one];
      const name = newName();
      const written = await writer.api.patch(`/api/v1/channels/${id}`, { name });
      const position = written.headers['parley-position'];
      const read = await reader.api.get(`/api/v1/channels/${id}`, { headers: { 'parley-position': position } });
      expect(read.json()).toMatchObject({ name });
    }
  });

  it('evaluate If-Match on the log: of many writes with one ETag, exactly one succeeds', async () => {
    const id = await createChannel();
    const etag = (await one.api.get(`/api/v1/channels/${id}`)).headers.etag ?? '';
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        [one, other][n % 2]?.api.patch(
          `/api/v1/channels/${id}`,
          { name: newName() },
          { headers: { 'if-match': etag } },
        ),
      ),
    );
    const statuses = replies.map((reply) => reply?.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 412)).toHaveLength(19);
    expect(await eventsOf(id)).toHaveLength(2);
  });

  it('run one of many concurrent requests with the same idempotency key', async () => {
    const headers = { 'idempotency-key': `concurrent-${newName().replace(' ', '-')}` };
    const send = (n: number) =>
      (n % 2 ? one : other).api.post('/api/v1/channels', { name: 'once', participants: [] }, { headers });
    const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => send(n)));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200, 409]));
    const final = await send(0);
    const answers = [...replies, final].filter(({ status }) => status === 200).map(({ text }) => text);
    expect(new Set(answers).size).toBe(1);
    expect(await eventsOf(answerOf(final).channelId)).toHaveLength(1);
  });
});
