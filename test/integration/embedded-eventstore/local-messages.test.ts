/* What a process and the thread of its event store send each other: each message wakes a thread. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startEmbeddedEventStore, type EventStoreServer } from '#infra/embedded-eventstore/index.ts';
import { LocalLog } from '#infra/embedded-eventstore/local/local-log.ts';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';

let folder: string;
let server: EventStoreServer;
const log = new LocalLog();
let [sent, received] = [0, 0];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'local-messages-'));
  server = await startEmbeddedEventStore({ dataDir: folder });
  const port = server.localPort;
  const post = port.postMessage.bind(port);
  port.postMessage = (message: unknown) => {
    sent += 1;
    post(message);
  };
  log.attach(port);
  port.on('message', () => (received += 1));
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const append = (revision: number) =>
  log.append('stream', revision, Date.now() + 10_000, [[newId(), 'tested', '{}', '{}']]);

test('an append is one message, and so are its answer, the end of the log and its delivery to a group', async () => {
  await log.createGroup('group', { messageTimeoutMs: 10_000, types: 'tested', startFrom: 0 });
  const delivered: { readonly id: string; readonly position: number }[] = [];
  const onDelivery = (id: string, position: number) => void delivered.push({ id, position });
  const membership = await log.join('group', 100, { onDelivery, onDropped: () => undefined });
  const appendNext = async (): Promise<void> => {
    const revision = delivered.length - 1;
    await append(revision);
    await eventually(() => expect(delivered).toHaveLength(revision + 2));
  };
  await appendNext();
  [sent, received] = [0, 0];
  for (let round = 1; round <= 5; round++) {
    await appendNext();
    expect([sent, received, log.end]).toEqual([round, round, delivered.at(-1)?.position]);
  }

  // Acknowledgements wait for the next call, but not for long.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    for (const { id } of delivered) membership.acknowledge(id);
    await iterations();
    expect(sent).toBe(5);
    vi.runAllTimers();
    await iterations();
    expect(sent).toBe(6);
  } finally {
    vi.useRealTimers();
  }
  const [group] = await log.groups();
  expect(group).toMatchObject({ inFlight: 0, waiting: 0 });
});

async function iterations(): Promise<void> {
  for (let nth = 0; nth < 3; nth++) await new Promise(setImmediate);
}
