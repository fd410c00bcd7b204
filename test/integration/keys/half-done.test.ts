/* The error of a command that failed after one of its writes must not claim that nothing was written. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { Keys } from '#libs/features/keys/index.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { composeReadModels } from '#services/features.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';

let api: TestApi<TestRedis>;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
});
afterAll(() => api.stop());

const typesIn = async (stream: string): Promise<string[]> =>
  (await readLog(api.stores.eventStore.url, stream)).map(({ type }) => type);

it('the answer to a change of an organization has its owner while Redis is unavailable', async () => {
  const url = `/api/v1/organizations/${api.organizationId}`;
  const rename = (name: string) => api.call({ method: 'PATCH', url, key: api.rootKey, body: { name } });
  expect((await rename('before')).status).toBe(200);
  await api.stores.redis.kill9();
  const answer = await rename('after');
  await api.stores.redis.restart();
  const renamed = (await typesIn(`organization-${api.organizationId}`)).filter((type) => type.includes('Renamed'));
  expect(renamed).toHaveLength(2);
  expect(answer).toMatchObject({ status: 200, json: { owner: { display_name: 'Owner' } } });
});

it('the error does not claim an unchanged key if the second step of a rotation fails', async () => {
  const { platform } = api.stores;
  const context = (): CommandContext => ({
    commandId: newId(),
    organizationId: api.organizationId,
    actor: { type: 'system', id: 'test' },
    at: new Date().toISOString(),
  });
  let mayIssue = true;
  const store: EventStore = {
    append(stream, expected, events, options) {
      if (!mayIssue && events.some(({ type }) => type === 'KeyIssued.v4')) throw storeUnavailable('the event store');
      return platform.store.append(stream, expected, events, options);
    },
    readStream: (stream, options) => platform.store.readStream(stream, options),
    ping: () => platform.store.ping(),
    close: () => platform.store.close(),
  };
  const announcements = { announce: async () => undefined };
  const commands = new Keys({ ...platform, store, ...composeReadModels(platform), announcements });
  const description = {
    name: 'old',
    principal: { type: 'service' as const, id: 'robot' },
    access: 'organization' as const,
    expiresAt: null,
  };
  const issued = await commands.issue(context(), { ...description, scopes: ['read'] }, 'operator');
  if (!issued.ok) throw new Error(issued.rejection.reason);
  mayIssue = false;
  const rotation = commands.rotate(context(), issued.entity.id, { graceSeconds: 60, grantor: 'operator' });
  await expect(rotation).rejects.toMatchObject({ code: 'outcome_unknown' });
  expect(await typesIn(`key-${issued.entity.id}`)).toContain('KeyRotated.v1');
});
