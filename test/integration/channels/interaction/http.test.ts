import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';

import { CONTENT, INVOCATION_CONFIG, PARTICIPANTS, REQUIRED, ROLES } from './interaction-shapes.ts';
import { keysIn } from '#test/support/redis-commands.ts';

let api: TestApi<TestRedis>;
let channel: string;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  channel = await newChannel();
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object, headers?: Record<string, string>): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }), ...(headers && { headers }) });
}

async function newChannel(): Promise<string> {
  return (await call('POST', '/api/v1/channels', { type: 'websocket', name: 'A channel' })).json.id;
}

const hello = { content: [{ type: 'text', text: 'hello' }] };
const post = (body: object, headers?: Record<string, string>, at = channel): Promise<Answer> =>
  call('POST', `/api/v1/channels/${at}/interactions`, body, headers);
const read = (id: string, query = ''): Promise<Answer> => call('GET', `/api/v1/interactions/${id}${query}`);
const list = (at: string, query = ''): Promise<Answer> => call('GET', `/api/v1/channels/${at}/interactions${query}`);

async function posted(body: object, at = channel): Promise<Answer['json']> {
  const answer = await post(body, undefined, at);
  expect(answer.json).toMatchObject({ channel_id: at });
  return answer.json;
}

/** The list of the root has the descendants of all levels, so that they have none of their own. */
const nestedOf = (one: Answer['json']): object => ({ ...one, nested_interactions: null });

describe('a posted interaction', () => {
  it('has every content item as it was sent', async () => {
    const interaction = await posted({ content: CONTENT });
    expect(interaction.content).toEqual(CONTENT);
    expect((await read(interaction.id)).json).toEqual(interaction);
  });

  it.each(PARTICIPANTS)('may come from $type', async (participant) => {
    const interaction = await posted({ ...hello, participant });
    expect(interaction.participant).toEqual(participant);
    expect((await read(interaction.id)).json).toEqual(interaction);
  });

  it('may come from a user of the organization, and from no other', async () => {
    const participant = { type: 'authenticated_user', user_id: api.userId };
    expect((await posted({ ...hello, participant })).participant).toEqual(participant);
    const unknown = await post({ ...hello, participant: { type: 'authenticated_user', user_id: 'nobody' } });
    expect([unknown.status, unknown.json.detail[0].loc]).toEqual([422, ['body', 'participant', 'user_id']]);
  });

  it('names the application that its organization has at that time, at every gateway', async () => {
    const other = await api.startInstance();
    const postThere = () =>
      other.call({ method: 'POST', url: `/api/v1/channels/${channel}/interactions`, key: api.rootKey, body: hello });
    const change = (application: string | null) =>
      call('PATCH', `/api/v1/organizations/${api.organizationId}`, { application });
    try {
      const applications = [(await posted(hello)).organization_application];
      expect((await postThere()).json.organization_application).toBe(applications[0]);
      expect((await change('health')).status).toBe(200);
      applications.push((await posted(hello)).organization_application);
      await eventually(async () => expect((await postThere()).json.organization_application).toBe('health'));
      await change(null);
      applications.push((await posted(hello)).organization_application);
      expect(applications).toEqual([null, 'health', null]);
    } finally {
      await other.stop();
    }
  });

  it.each(ROLES)('may be a %s', async (role) => {
    expect(await posted({ ...hello, content_role: role })).toMatchObject({ content_role: role, complete: true });
  });

  it('keeps its configuration and its metadata, including nulls', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`key ${n}`, { n, list: [null] }]));
    const interaction = await posted({ ...hello, invocation_config: INVOCATION_CONFIG, metadata: { metadata: null } });
    expect(interaction).toMatchObject({ metadata: { metadata: null } });
    expect(interaction.invocation_config).toMatchObject(INVOCATION_CONFIG);
    const large = await posted({ ...hello, metadata });
    expect(large.metadata).toEqual(metadata);
    expect((await read(large.id)).json).toEqual(large);
  });

  it.each(CONTENT.filter(({ type }) => REQUIRED[String(type)]?.length))(
    'is refused where $type lacks a required field',
    async (item) => {
      for (const field of REQUIRED[String(item['type'])] ?? []) {
        const { [field]: _left, ...rest } = item;
        const { status, json } = await post({ content: [rest] });
        expect(status).toBe(422);
        expect(json.detail).toMatchObject([{ type: 'missing', loc: ['body', 'content', 0, item['type'], field] }]);
      }
    },
  );

  it('is refused without content, and with an unknown type', async () => {
    expect((await post({})).json.detail).toMatchObject([{ type: 'missing', loc: ['body', 'content'] }]);
    const { status, json } = await post({ content: [{ type: 'smell' }] });
    expect([status, json.detail[0].type]).toEqual([422, 'union_tag_invalid']);
  });
});

describe('spans', () => {
  it('form a tree, which the answer lists by sequence', async () => {
    const at = await newChannel();
    const root = await posted({ ...hello, span_id: 'root' }, at);
    const a = await posted({ ...hello, parent_span_id: 'root', span_id: 'a' }, at);
    const b = await posted({ ...hello, parent_span_id: 'root', span_id: 'b' }, at);
    const underA = await posted({ ...hello, parent_span_id: 'a' }, at);
    const underB = await posted({ ...hello, parent_span_id: 'b', complete: false }, at);
    const laterUnderRoot = await posted({ ...hello, parent_span_id: 'root' }, at);
    await posted({ ...hello, span_id: 'elsewhere' }, at);
    const nested = (await read(root.id, '?include_nested_interactions=true')).json;
    expect(nested).toEqual({ ...root, nested_interactions: [a, b, underA, laterUnderRoot].map(nestedOf) });
    expect((await read(root.id)).json).not.toHaveProperty('nested_interactions');
    const all = (await read(root.id, '?include_nested_interactions=true&include_incomplete=true')).json;
    expect(all.nested_interactions).toEqual([a, b, underA, underB, laterUnderRoot].map(nestedOf));
    expect(new Set(all.nested_interactions.map((one: Answer['json']) => one.interaction_id))).toEqual(
      new Set(['root']),
    );
  });

  it('must be new, and their parents must exist, in the same channel', async () => {
    const at = await newChannel();
    await posted({ ...hello, span_id: 'one' }, at);
    const refused = [
      await post({ ...hello, span_id: 'one' }, undefined, at),
      await post({ ...hello, parent_span_id: 'none' }, undefined, at),
      await post({ ...hello, parent_span_id: 'one' }),
      await post({ ...hello, span_id: 'own', parent_span_id: 'own' }, undefined, at),
    ];
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422, 422]);
    expect(refused.map(({ json }) => json.detail[0].loc[1])).toEqual([
      'span_id',
      'parent_span_id',
      'parent_span_id',
      'parent_span_id',
    ]);
  });
});

describe('an incomplete interaction', () => {
  it('is shown on request, grows, and is completed once', async () => {
    const at = await newChannel();
    const { id, sequence } = await posted({ content: [], complete: false }, at);
    expect((await read(id)).status).toBe(404);
    expect((await list(at)).json).toMatchObject({ items: [], meta: { total: 0 } });
    await call('POST', `/api/v1/interactions/${id}/content`, hello);
    expect((await read(id, '?include_incomplete=true')).json).toMatchObject({ ...hello, complete: false, sequence });
    expect((await list(at, '?include_incomplete=true')).json).toMatchObject({ items: [hello], meta: { total: 1 } });
    const completed = await call('POST', `/api/v1/interactions/${id}/complete`, {});
    expect(completed.json).toMatchObject({ ...hello, complete: true });
    expect((await read(id)).json).toEqual(completed.json);
    expect((await list(at)).json).toMatchObject({ items: [completed.json], meta: { total: 1 } });
    for (const change of ['content', 'complete', 'fail']) {
      const again = await call('POST', `/api/v1/interactions/${id}/${change}`, hello);
      expect([again.status, again.json.code]).toEqual([409, 'complete_already']);
    }
  });

  it('is limited in number per channel; the refusal says how to end the oldest one', async () => {
    const at = await newChannel();
    const begin = { content: [], complete: false };
    const begun = await Promise.all(Array.from({ length: 64 }, () => posted(begin, at)));
    const left = begun.toSorted((one, other) => one.sequence - other.sequence).map(({ id }) => id);
    for (const oldest of left.slice(0, 2)) {
      const refused = await post(begin, { 'idempotency-key': 'begun-by-another-agent' }, at);
      expect(refused).toMatchObject({ status: 409, json: { code: 'too_many_open', oldest_incomplete: oldest } });
      const [way = ''] = /\/api\/\S+\/fail/.exec(refused.json.detail) ?? [];
      expect((await call('POST', way, { reason: 'its agent is gone' })).json).toMatchObject({ id: oldest });
      expect((await posted(begin, at)).complete).toBe(false);
    }
    await call('POST', `/api/v1/interactions/${left[2]}/complete`, {});
    // A key does not store refusals.
    expect((await post(begin, { 'idempotency-key': 'begun-by-another-agent' }, at)).status).toBe(200);
  });

  it('can fail with a reason', async () => {
    const { id } = await posted({ ...hello, complete: false, metadata: { a: 1 } });
    await call('POST', `/api/v1/interactions/${id}/fail`, { reason: 'no tokens' });
    expect((await read(id)).json).toMatchObject({ ...hello, complete: true, metadata: { a: 1, failure: 'no tokens' } });
  });
});

describe('a repeated request', () => {
  const key = (name: string): Record<string, string> => ({ 'idempotency-key': name });

  /** As after a lost answer: Redis has no record of it, and the log has the events. */
  async function forgetAnswers(): Promise<void> {
    const { redis } = api.stores.platform;
    const keys = await keysIn(redis, 'parley:idempotency:*');
    await redis.remove(keys);
  }

  it('gets the first answer and does nothing, with or without a record in Redis', async () => {
    const at = await newChannel();
    const first = await post({ ...hello, complete: false }, key('post'), at);
    const { id } = first.json;
    const steps = [
      ['content', hello],
      ['complete', {}],
    ] as const;
    const answers: Answer[] = [];
    for (const [step, body] of steps) {
      answers.push(await call('POST', `/api/v1/interactions/${id}/${step}`, body, key(step)));
    }
    const before = (await list(at, '?include_incomplete=true')).json;
    expect((await post({ ...hello, complete: false }, key('post'), at)).bytes).toBe(first.bytes);
    await forgetAnswers();
    expect((await post({ ...hello, complete: false }, key('post'), at)).bytes).toBe(first.bytes);
    const other = await api.startInstance();
    for (const instance of [api, other]) {
      await forgetAnswers();
      for (const [step, body] of steps) {
        const url = `/api/v1/interactions/${id}/${step}`;
        const again = await instance.call({ method: 'POST', url, body, key: api.rootKey, headers: key(step) });
        expect(again.status).toBe(200);
        // It has been completed since: the answer to the repeated append shows that.
        expect(again.json).toEqual(answers[1]?.json);
      }
    }
    await other.stop();
    expect((await list(at, '?include_incomplete=true')).json).toEqual(before);
  });

  it('gets its own interaction while that is still incomplete', async () => {
    const { id } = await posted({ content: [], complete: false });
    const url = `/api/v1/interactions/${id}/content`;
    const first = await call('POST', url, hello, key('still-open'));
    await forgetAnswers();
    expect((await call('POST', url, hello, key('still-open'))).bytes).toBe(first.bytes);
    expect(first.json.content).toEqual(hello.content);
  });
});

describe('a caller without access', () => {
  it('cannot tell a foreign interaction from a missing one', async () => {
    const organization = await call('POST', '/api/v1/organizations', { name: 'Other' });
    const user = await call('POST', '/api/v1/users', {
      display_name: 'Eve',
      organization_id: organization.json.id,
    });
    const made = await call('POST', '/api/v1/keys', {
      name: 'other',
      scopes: ['read', 'write'],
      principal: { type: 'user', id: user.json.id },
      access: 'organization',
      organization_id: organization.json.id,
    });
    const theirs = await posted({ ...hello, complete: false });
    const missing = await posted(hello, await newChannel());
    const nowhere = missing.id.slice(0, -4) + 'ABCD';
    const urls = (id: string, within: string): [Call['method'], string][] => [
      ['GET', `/api/v1/interactions/${id}?include_incomplete=true`],
      ['POST', `/api/v1/interactions/${id}/content`],
      ['POST', `/api/v1/interactions/${id}/complete`],
      ['POST', `/api/v1/interactions/${id}/fail`],
      ['GET', `/api/v1/channels/${within}/interactions`],
      ['POST', `/api/v1/channels/${within}/interactions`],
    ];
    const absent = urls(nowhere, '0198c0de-0000-7000-8000-000000000000');
    for (const [index, [method, url]] of urls(theirs.id, channel).entries()) {
      const send = (to: string): Promise<Answer> =>
        api.call({ method, url: to, key: made.json.key, ...(method === 'POST' && { body: hello }) });
      const [foreign, nothing] = [await send(url), await send(absent[index]?.[1] ?? '')];
      expect([foreign.status, foreign.bytes]).toEqual([404, nothing.bytes]);
      expect(nothing.status).toBe(404);
    }
    for (const junk of ['x', `${theirs.id}A`, theirs.id.slice(1)]) expect((await read(junk)).status).toBe(404);
  });

  it('cannot post to an archived channel', async () => {
    const at = await newChannel();
    const open = await posted({ ...hello, complete: false }, at);
    await call('POST', `/api/v1/channels/${at}/archive`);
    const answer = await post(hello, undefined, at);
    expect([answer.status, answer.json.code]).toEqual([409, 'archived']);
    expect((await call('POST', `/api/v1/interactions/${open.id}/complete`, {})).status).toBe(409);
  });
});

describe('the OpenAPI document', () => {
  it('shows the discriminators of unions', async () => {
    const { schemas } = (await call('GET', '/openapi.json')).json.components;
    for (const [name, size] of [
      ['InteractionContent', 12],
      ['InteractionParticipant', 6],
    ] as const) {
      expect(schemas[name].oneOf).toHaveLength(size);
      expect(schemas[name].discriminator.propertyName).toBe('type');
      const { mapping } = schemas[name].discriminator;
      expect(Object.keys(mapping)).toHaveLength(size);
      for (const [type, ref] of Object.entries<string>(mapping)) {
        expect(schemas[ref.split('/').at(-1) ?? ''].properties.type.const).toBe(type);
      }
    }
  });
});

describe('while Redis is down', () => {
  it('a post without lookups is accepted; a post with lookups is 503', async () => {
    const at = await newChannel();
    const { id } = await posted({ ...hello, complete: false, span_id: 'known' }, at);
    await api.stores.redis.kill9();
    const made = await eventually(async () => {
      const answer = await post(hello, undefined, at);
      expect(answer.status).toBe(200);
      return answer.json;
    });
    for (const [url, body] of [
      [`/api/v1/channels/${at}/interactions`, { ...hello, parent_span_id: 'known' }],
      [`/api/v1/channels/${at}/interactions`, { ...hello, span_id: 'new' }],
      [`/api/v1/interactions/${id}/content`, hello],
      [`/api/v1/interactions/${id}/complete`, {}],
    ] as const) {
      expect((await call('POST', url, body)).status).toBe(503);
    }
    expect((await read(made.id)).status).toBe(503);
    await api.stores.redis.restart();
    expect(await eventually(async () => (await read(made.id)).status === 200)).toBe(true);
    expect((await read(made.id)).json).toEqual(made);
  });
});
