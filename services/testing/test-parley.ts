/** A running Parley for tests, in this process or elsewhere. Everything is created through the API. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { ParleyClient, refusalOf, type Channel, type components, type paths } from '#libs/client/src/index.ts';

/** Request body of a route that creates something, all fields optional: missing ones get a default. */
type Fields<Path extends '/api/v1/channels' | '/api/v1/keys' | '/api/v1/users'> = Partial<
  NonNullable<paths[Path]['post']['requestBody']>['content']['application/json']
>;

export type ChannelFields = Fields<'/api/v1/channels'>;
export type KeyFields = Omit<Fields<'/api/v1/keys'>, 'organization_id'>;
export type UserFields = Omit<Fields<'/api/v1/users'>, 'organization_id'>;

/** The address of a Parley, and an API key for it. */
export interface ParleyAccess {
  /** `http://127.0.0.1:41234`, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string;
}

export interface TestCaller extends ParleyAccess {
  /** Calls the API and subscribes to channels with `apiKey`. */
  readonly client: ParleyClient;
}

/** A user with its own key, with the scopes `read` and `write`. */
export type TestUser = components['schemas']['User'] & TestCaller;

/**
 * An organization; its `apiKey` has the scopes `read`, `write`, `impersonate` and `admin`. All methods reject with an
 * `ApiError` when Parley refuses. What they create can be read as soon as they resolve. They retry while a store is
 * unavailable or slow, and create nothing twice.
 */
export interface TestOrganization extends TestCaller {
  readonly organizationId: string;
  /** Default: a channel named "Test channel" with the owner of `apiKey` as participant. */
  createChannel(fields?: ChannelFields): Promise<Channel>;
  createUser(fields?: UserFields): Promise<TestUser>;
  /** The secret of a new key. Default: a key of the owner of `apiKey` with the scopes `read` and `write`. */
  createKey(fields?: KeyFields): Promise<string>;
}

export interface TestParley extends TestOrganization {
  /** A new, empty organization for a test, without the cost of another start. */
  createOrganization(name?: string): Promise<TestOrganization>;
}

/**
 * A running Parley, used with a key that has all scopes, such as the first one.
 *
 * @throws ApiError (rejects) when the key is refused
 */
export async function testParley(access: ParleyAccess): Promise<TestParley> {
  const first = await organizationOf(access);
  return {
    ...testOrganization(access, first),
    createOrganization: (name = 'Test organization') => createOrganization(callerOf(access), name),
  };
}

/** @param organizationId of the key */
function testOrganization(access: ParleyAccess, organizationId: string): TestOrganization {
  const caller = callerOf(access);
  const { rest } = caller.client;
  const createKey = (fields: KeyFields = {}): Promise<string> => newKey(caller, fields);
  return {
    ...caller,
    organizationId,
    createKey,
    async createChannel(fields = {}) {
      const body = { type: 'websocket' as const, name: 'Test channel', ...fields };
      return answered((headers) => rest.POST('/api/v1/channels', { body, headers }));
    },
    async createUser(fields = {}) {
      const body = { display_name: 'Test user', ...fields };
      const user = await answered((headers) => rest.POST('/api/v1/users', { body, headers }));
      const apiKey = await createKey({ principal: { type: 'user', id: user.id }, access: 'participation' });
      return { ...user, ...callerOf({ url: caller.url, apiKey }) };
    },
  };
}

async function createOrganization(caller: TestCaller, name: string): Promise<TestOrganization> {
  const { rest } = caller.client;
  const { id } = await answered((headers) => rest.POST('/api/v1/organizations', { body: { name }, headers }));
  const body = { display_name: `Owner of ${name}`, organization_id: id };
  const owner = await answered((headers) => rest.POST('/api/v1/users', { body, headers }));
  const apiKey = await newKey(caller, {
    scopes: ['read', 'write', 'impersonate', 'admin'],
    principal: { type: 'user', id: owner.id },
    organization_id: id,
  });
  return testOrganization({ url: caller.url, apiKey }, id);
}

async function newKey({ client }: TestCaller, fields: Fields<'/api/v1/keys'>): Promise<string> {
  const body = {
    name: 'test key',
    scopes: ['read' as const, 'write' as const],
    access: 'organization' as const,
    ...fields,
  };
  // Without the headers: a replayed answer has no secret. At worst, a retry leaves an unused key behind.
  const { key } = await answered(() => client.rest.POST('/api/v1/keys', { body }));
  if (key === null) throw new Error('Parley answered without the secret of the new key');
  return key;
}

/** Finds the organization of the key in its list of keys. */
async function organizationOf(access: ParleyAccess): Promise<string> {
  const { rest } = callerOf(access).client;
  const [key] = (await answered(() => rest.GET('/api/v1/keys', { params: { query: { size: 1 } } }))).items;
  if (key === undefined) throw new Error(`the Parley at ${access.url} does not list the key of the request`);
  return key.organization_id;
}

function callerOf({ url, apiKey }: ParleyAccess): TestCaller {
  return { url, apiKey, client: new ParleyClient({ url, apiKey }) };
}

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

const ATTEMPTS = 10;

/** @param call is repeated with the same headers while Parley answers that it may succeed later */
async function answered<T>(call: (headers: Record<string, string>) => Promise<Answer<T>>): Promise<T> {
  const headers = { 'Idempotency-Key': randomUUID() };
  for (let attempt = 1; ; attempt++) {
    const { data, error, response } = await call(headers);
    if (data !== undefined) return data;
    const refusal = refusalOf(response, error);
    if (!refusal.passing || attempt === ATTEMPTS) throw refusal;
    await delay(50 * attempt);
  }
}
