import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { InteractionQueries } from '#libs/features/interactions/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { composeFeatures } from '#services/features.ts';
import { foldInteractions } from '#test/support/interaction-fold.ts';
import type { InteractionResource } from '#test/support/interaction-fold.ts';
import { playInteractions } from '#test/support/interaction-history.ts';
import { readLog } from '#test/support/log-reader.ts';
import type { LogEvent } from '#test/support/log-reader.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let queries: InteractionQueries;

beforeAll(async () => {
  test = await startTestPlatform();
  queries = composeFeatures(test.platform).interactions.queries;
});
afterAll(() => test.stop());

async function channelsOfLog(): Promise<Map<string, LogEvent[]>> {
  const channels = new Map<string, LogEvent[]>();
  for (const event of await readLog(test.eventStore.url, 'channel-')) {
    channels.set(event.stream, [...(channels.get(event.stream) ?? []), event]);
  }
  return channels;
}

function parsed(document: Buffer): InteractionResource {
  const { id, ...rest } = JSON.parse(document.toString());
  expect(id).toMatch(/^[A-Za-z0-9_-]{30}$/);
  return rest;
}

const bySequence = (a: InteractionResource, b: InteractionResource): number =>
  Number(a['sequence']) - Number(b['sequence']);

/** All that hangs below a span, found by looking at everything. */
function below(all: readonly InteractionResource[], span: unknown): InteractionResource[] {
  const children = all.filter((one) => one['parent_span_id'] === span);
  return children.flatMap((child) => [child, ...below(all, child['span_id'])]).sort(bySequence);
}

describe('interactions that two gateways write at once', () => {
  it.each([1, 2, 3])('are read as a plain fold of the log has them (history %i)', async (seed) => {
    const writers = [composeFeatures(test.platform), composeFeatures(test.platform)] as const;
    const { accepted, refused } = await playInteractions(writers, { seed, commands: 240 });
    expect(accepted).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(10);
    for (const [stream, events] of await channelsOfLog()) {
      const channelId = stream.slice('channel-'.length);
      const organizationId = String(events[0]?.metadata['organizationId']);
      const folded = [...foldInteractions(channelId, events).values()];
      const filter = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;
      const page = { size: 1_000, offset: 0, after: null };
      const listed = await queries.list(organizationId, channelId, filter, page, null);
      expect(listed?.items.map(parsed)).toEqual(folded);
      expect(listed?.total).toBe(folded.length);
      const complete = await queries.list(
        organizationId,
        channelId,
        { ...filter, includeIncomplete: false },
        page,
        null,
      );
      expect(complete?.items.map(parsed)).toEqual(folded.filter((one) => one['complete']));
      const spans = folded.map((one) => String(one['span_id']));
      expect(new Set(spans).size).toBe(spans.length);
      for (const span of spans.slice(0, 10)) {
        const found = await queries.descendants(organizationId, channelId, span, {
          reader: null,
          includeIncomplete: true,
        });
        expect(found.map(parsed)).toEqual(below(folded, span));
      }
    }
  });
});

describe('64 writers of one channel', () => {
  it.each([1, 2])(
    'are all kept, in an order without gaps, with fewer appends than commands (%i gateways)',
    async (n) => {
      let appends = 0;
      const { store } = test.platform;
      const counting: EventStore = {
        append: (...args) => {
          appends++;
          return store.append(...args);
        },
        readStream: (...args) => store.readStream(...args),
        ping: () => store.ping(),
        close: () => store.close(),
      };
      const gateways = Array.from({ length: n }, () => composeFeatures({ ...test.platform, store: counting }));
      const context = () => ({
        commandId: newId(),
        organizationId: 'org-64',
        actor: { type: 'service' as const, id: 'test' },
        at: new Date().toISOString(),
      });
      const created = context();
      await gateways[0]?.channels.commands.create(created, {
        id: created.commandId,
        type: 'websocket',
        channelType: 'chat',
        name: 'busy',
        participants: [],
        metaData: null,
        source: null,
        agentInvocationBehavior: null,
        parentChannelId: null,
        originMessageId: null,
      });
      const results = await Promise.all(
        Array.from({ length: 64 }, (_, writer) =>
          gateways[writer % n]?.interactions.commands.post(
            context(),
            created.commandId,
            {
              participant: { type: 'system' },
              content: [{ type: 'text', text: `${writer}` }],
              contentRole: 'user_message',
              complete: true,
              metadata: null,
              invocationConfig: null,
              turnId: null,
              spanId: newId(),
              parentSpanId: null,
              organizationApplication: null,
            },
            { spanIsNew: true },
          ),
        ),
      );
      expect(results.every((result) => result?.ok)).toBe(true);
      expect(appends).toBeLessThan(32);
      const filter = { order: 'asc', includeIncomplete: false, includeToolCallUpdates: false } as const;
      const page = { size: 100, offset: 0, after: null };
      const listed = (await queries.list('org-64', created.commandId, filter, page, null))?.items.map(parsed) ?? [];
      expect(listed.map((one) => one['sequence'])).toEqual(
        Array.from({ length: 64 }, (_, index) => sequenceOf(streamRevision(index + 1))),
      );
      expect(new Set(listed.map((one) => JSON.stringify(one['content']))).size).toBe(64);
    },
  );
});
