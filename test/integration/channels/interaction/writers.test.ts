import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { InteractionQueries } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { composeFeatures } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import type { InteractionResource } from '#test/support/interaction-fold.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let queries: InteractionQueries;

beforeAll(async () => {
  test = await startTestPlatform();
  queries = composeFeatures(test.platform).channels.queries;
});
afterAll(() => test.stop());

function parsed(document: Buffer): InteractionResource {
  const { id, ...rest } = JSON.parse(document.toString());
  expect(id).toMatch(/^[A-Za-z0-9_-]{30}$/);
  return rest;
}

describe('64 writers of one channel', () => {
  it.each([1, 2])(
    'are all kept, in an order without gaps, with fewer appends than commands (%i gateways)',
    async (n) => {
      const store = new CountingStore(test.platform.store);
      const gateways = Array.from({ length: n }, () => composeFeatures({ ...test.platform, store }));
      const context = () => serviceCommand('org-64');
      const created = context();
      await gateways[0]?.channels.create(created, { id: created.commandId, ...PLAIN_CHANNEL, name: 'busy' });
      const results = await Promise.all(
        Array.from({ length: 64 }, (_, writer) =>
          gateways[writer % n]?.channels.interactions.post(
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
      expect(store.appends).toBeLessThan(32);
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

it('a changed application counts for the posts of other processes', async () => {
  const [first, second] = [composeFeatures(test.platform), composeFeatures(test.platform)];
  const { commandId: id } = serviceCommand('-');
  const command = () => ({ ...serviceCommand(id), organizationId: id });
  const data = { id, name: 'tenant', application: 'app_main', ownerUserId: null } as const;
  await first.organizations.create(command(), id, { type: 'OrganizationCreated.v1', data });
  const organizations = second.channels.directories.organizations;
  const { stop } = second.startAuthenticator();
  // It is then not read again before an announcement.
  await eventually(() => second.announcements.areReceivedSince(performance.now(), 60_000));
  expect(await organizations.application(id)).toBe('app_main');
  await first.organizations.change(command(), id, { application: 'health' });
  await eventually(async () => expect(await organizations.application(id)).toBe('health'));
  stop();
});
