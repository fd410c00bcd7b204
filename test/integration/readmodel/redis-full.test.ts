/* Redis refuses writes: what a gateway has acknowledged is not missing, and not as it was before, in its reads. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { composeReadModels } from '#services/features.ts';
import { startReadModelProbe } from '#services/gateway/role.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { projectionProbe } from '#services/projector/role.ts';
import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { roleContext } from '#test/support/role-context.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi<TestRedis>;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
});
afterAll(() => api.stop());

const call = (method: Call['method'], url: string, body?: object): Promise<Answer> =>
  api.call({ method, url, key: api.rootKey, ...(body !== undefined && { body }) });
const created = async (url: string, body: object): Promise<string> => {
  const answer = await call('POST', url, body);
  expect(answer.status).toBe(200);
  return answer.json.id;
};
const newChannel = (): Promise<string> => created('/api/v1/channels', { name: 'Before' });
const setMemory = (bytes: string): Promise<unknown> => api.stores.redis.command('CONFIG', 'SET', 'maxmemory', bytes);

async function expectReadModel(check: object): Promise<void> {
  expect((await call('GET', '/health/ready')).json.checks.read_model).toEqual(check);
}

describe('while Redis is full', () => {
  it('a gateway answers 503 for what it has written, says so in its readiness, and 200 afterwards', async () => {
    const changed = await newChannel();
    const open = await created(`/api/v1/channels/${changed}/interactions`, { content: [], complete: false });
    const untouched = await newChannel();
    const known = await created(`/api/v1/channels/${untouched}/interactions`, { content: [] });
    // Only the gateway itself applies what it has written.
    const startProjector = await api.stopProjector();
    await setMemory('1');
    try {
      const made = await newChannel();
      const posted = await created(`/api/v1/channels/${made}/interactions`, { content: [] });
      expect((await call('POST', `/api/v1/interactions/${open}/complete`, {})).status).toBe(200);
      const written = [
        `/api/v1/channels/${made}`,
        `/api/v1/channels/${made}/interactions`,
        `/api/v1/interactions/${posted}`,
        `/api/v1/channels/${changed}`,
        `/api/v1/interactions/${open}`,
        `/api/v1/channels/${changed}/interactions`,
        '/api/v1/channels',
      ];
      for (const url of written) {
        const answer = await call('GET', url);
        expect([url, answer.status]).toEqual([url, 503]);
        expect(answer.headers['retry-after']).toBeDefined();
      }
      expect((await call('GET', `/api/v1/channels/${untouched}`)).status).toBe(200);
      expect((await call('GET', `/api/v1/interactions/${known}`)).status).toBe(200);
      expect((await call('GET', '/api/v1/users')).status).toBe(200);
      // Also where a full Redis would have to load the function that finds a page.
      for (const functions of [null, 'FLUSH']) {
        if (functions !== null) await api.stores.redis.command('FUNCTION', functions);
        const page = await call('GET', `/api/v1/channels/${untouched}/interactions`);
        expect([page.status, page.json.items?.map(({ id }: { id: string }) => id)]).toEqual([200, [known]]);
      }
      expect(await call('GET', '/health/ready')).toMatchObject({
        status: 503,
        json: { checks: { read_model: { status: 'down', detail: { entities_behind: 2 } } } },
      });

      await setMemory('0');
      for (const url of written) expect((await call('GET', url)).status).toBe(200);
      expect((await call('GET', `/api/v1/interactions/${open}`)).json.complete).toBe(true);
      await eventually(() => expectReadModel({ status: 'ok', detail: { entities_behind: 0 } }));
    } finally {
      await setMemory('0');
      await startProjector();
    }
  });

  it('its readiness check alone brings the read models up to date', async () => {
    const id = await newChannel();
    const startProjector = await api.stopProjector();
    try {
      await setMemory('1');
      expect((await call('PATCH', `/api/v1/channels/${id}`, { name: 'After' })).status).toBe(200);
      await eventually(() => expectReadModel({ status: 'down', detail: { entities_behind: 1 } }));
      await setMemory('0');
      await eventually(() => expectReadModel({ status: 'ok', detail: { entities_behind: 0 } }));
      const other = await api.startInstance();
      expect((await other.call({ method: 'GET', url: `/api/v1/channels/${id}`, key: api.rootKey })).json.name).toBe(
        'After',
      );
      await other.stop();
    } finally {
      await setMemory('0');
      await startProjector();
    }
  });
});

it('a gateway counts and applies what a gateway before it has appended and not applied', async () => {
  const id = await newChannel();
  await call('PATCH', `/api/v1/channels/${id}`, { name: 'Known' });
  const startProjector = await api.stopProjector();
  await setMemory('1');
  try {
    // Appended after the checkpoint of the projector, by a process that will not apply it.
    await call('PATCH', `/api/v1/channels/${id}`, { name: 'After' });
    const context = roleContext(api.stores.platform);
    const { probe, job } = startReadModelProbe(context);
    expect(await probe.check()).toMatchObject({ detail: { entities_behind: null } });
    await eventually(async () => expect(await probe.check()).toEqual({ ok: false, detail: { entities_behind: 1 } }));
    await setMemory('0');
    await eventually(async () => expect(await probe.check()).toEqual({ ok: true, detail: { entities_behind: 0 } }));
    await job.stop();
    const channel = await context.features.channels.channel(api.organizationId, id);
    expect(String(channel?.json)).toContain('After');
  } finally {
    await setMemory('0');
    await startProjector();
  }
});

it('a process that has not reached the end of the log since its start is not ready', async () => {
  const { platform } = api.stores;
  const { projector, state } = composeReadModels(platform);
  const loop = new ProjectionLoop({ feed: platform.feed, state, projector, onProblem: () => undefined });
  const probe = projectionProbe(loop, platform.feed);
  expect(await probe.check()).toMatchObject({ ok: false, detail: { caught_up: false, problem: null } });
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  await eventually(async () => expect((await probe.check()).ok).toBe(true));
  expect(await probe.check()).toMatchObject({ ok: true, detail: { caught_up: true } });
  stop.abort();
  await running;
});

it('readiness says why Redis does not answer', async () => {
  const reason = async (): Promise<unknown> => (await call('GET', '/health/ready')).json.checks.redis.detail?.reason;
  await api.stores.redis.kill9();
  try {
    await eventually(async () => expect(await reason()).toBe('ECONNREFUSED'));
  } finally {
    await api.stores.redis.restart();
  }
  await eventually(async () => expect(await reason()).toBeUndefined());
});
