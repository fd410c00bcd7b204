/** The whole API on new stores, with a first organization and a key with every scope. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { parseConfig } from '#libs/platform/config/index.ts';
import type { HttpServer } from '#libs/platform/http/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import type { Features } from '#services/features.ts';
import { bootstrap } from '#services/first-organization.ts';
import { buildGateway } from '#services/gateway/role.ts';
import { start as startProjector } from '#services/projector/role.ts';
import type { RoleContext } from '#services/role.ts';

import { eventually } from './eventually.ts';
import { startTestPlatform, type TestPlatform, type TestPlatformOptions, type WithOwnRedis } from './platform.ts';
import { roleContext } from './role-context.ts';
import type { EmptyRedis, TestRedis } from './redis.ts';

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** Value of `Authorization`. */
  readonly key?: string | undefined;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly bytes: string;
  // Tests assert the shape that they expect.
  // eslint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** Corresponds to one process of the API: instances share only the stores. */
export interface TestInstance {
  call(call: Call): Promise<Answer>;
  readonly app: HttpServer['app'];
  /** Listens on a free port. @returns its URL */
  listen(): Promise<string>;
  stop(): Promise<void>;
}

export interface TestApi<R extends EmptyRedis = EmptyRedis> extends TestInstance {
  readonly stores: TestPlatform<R>;
  /** Roles of this instance. */
  readonly features: Features;
  readonly organizationId: string;
  readonly userId: string;
  /** Key with every scope. */
  readonly rootKey: string;
  startInstance(): Promise<TestInstance>;
  /** Until the returned function is called, only the process that appends an event applies it to the read models. */
  stopProjector(): Promise<() => Promise<void>>;
}

const config = parseConfig({ RATE_LIMIT_PER_ADDRESS: '0', RATE_LIMIT_PER_KEY: '0' });

export async function startTestApi(options: WithOwnRedis): Promise<TestApi<TestRedis>>;
export async function startTestApi(options?: TestPlatformOptions): Promise<TestApi>;
export async function startTestApi(options?: TestPlatformOptions): Promise<TestApi> {
  const stores = await startTestPlatform(options);
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-api-'));
  const { platform } = stores;
  const context = roleContext(platform, stores.config);
  const { features } = context;
  const first = await bootstrap({
    store: platform.store,
    organizations: features.organizations,
    users: features.users,
    keys: features.keys,
    dataDir,
  });
  let projector = await startProjector(context, config);
  await eventually(() => features.state.isComplete());
  const instance = await startInstance(context);
  return {
    ...instance,
    stores,
    features,
    organizationId: first.organizationId,
    userId: first.userId,
    rootKey: first.apiKey ?? '',
    startInstance: () => startInstanceOfItsOwn(stores),
    async stopProjector() {
      await projector.stop();
      return async () => {
        projector = await startProjector(context, config);
      };
    },
    async stop() {
      await instance.stop();
      await projector.stop();
      await stores.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

const INDEX_IS_BUILT = 'The search index is being built';

async function startInstance(context: RoleContext): Promise<TestInstance> {
  const { server, stop } = await buildGateway(context, config);
  return {
    async call({ method, url, key, body, headers }) {
      const request = () =>
        server.app.inject({
          method,
          url,
          headers: { ...(key !== undefined && { authorization: key }), ...headers },
          ...(body !== undefined && { payload: body }),
        });
      let answer = await request();
      // On a busy machine the first search may come before the thread that builds the index: repeated, as clients do.
      while (answer.statusCode === 503 && answer.payload.includes(INDEX_IS_BUILT)) answer = await request();
      const bytes = answer.payload;
      return {
        status: answer.statusCode,
        headers: answer.headers,
        bytes,
        json: bytes === '' ? undefined : JSON.parse(bytes),
      };
    },
    app: server.app,
    listen: () => server.listen({ host: '127.0.0.1', port: 0 }),
    stop,
  };
}

/** Has its own connections to Redis, and shares the client of the event store, of which a process has only one. */
async function startInstanceOfItsOwn(stores: TestPlatform): Promise<TestInstance> {
  const redis = connectRedis(stores.redis.url);
  await waitForRedis(redis, 60_000);
  const platform = { ...stores.platform, redis, readModel: new ReadModel(redis) };
  const instance = await startInstance(roleContext(platform, stores.config));
  return {
    ...instance,
    async stop() {
      await instance.stop();
      redis.close();
    },
  };
}
