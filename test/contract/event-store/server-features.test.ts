import { describe, expect, test } from 'vitest';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { z } from 'zod';
import { numberedEvents, uniqueName, useEventStore } from './support.ts';
import { createRequire } from 'node:module';
import type { MethodDefinition } from '@grpc/grpc-js';

// The client does not expose the advertised features; its service definitions
// name the methods that it requests.
const generated = createRequire(createRequire(import.meta.url).resolve('@eventstore/db-client'));
const methods = z.record(z.string(), z.object({ path: z.string() }));
const streams = methods.parse(generated('../generated/streams_grpc_pb.js').StreamsService);
const persistent = methods.parse(generated('../generated/persistent_grpc_pb.js').PersistentSubscriptionsService);

type Capabilities = {
  serverVersion: string;
  supports(method: Pick<MethodDefinition<unknown, unknown>, 'path'>, feature?: string): boolean;
};

describe('server features', () => {
  const store = useEventStore();

  const capabilities = async (): Promise<Capabilities> => {
    const found: unknown = await Reflect.get(store.client, 'capabilities');
    return z
      .custom<Capabilities>((value) => typeof value === 'object' && value !== null && 'supports' in value)
      .parse(found);
  };

  test('the server reports its version', async () => {
    expect((await capabilities()).serverVersion).toMatch(/^\d+\.\d+/);
  });

  test.each(['read', 'append', 'batchAppend', 'delete', 'tombstone'])('streams.%s is advertised', async (name) => {
    const method = streams[name];
    expect(method).toBeDefined();
    expect(method && (await capabilities()).supports(method)).toBe(true);
  });

  test.each([
    ['create', 'all'],
    ['update', 'all'],
    ['delete', 'all'],
    ['read', 'all'],
    ['getInfo', 'stream'],
    ['getInfo', 'all'],
    ['list', 'stream'],
    ['list', 'all'],
    ['replayParked', 'stream'],
    ['replayParked', 'all'],
    ['restartSubsystem', undefined],
  ])('persistentSubscriptions.%s with %s is advertised, so that the client needs no HTTP/1', async (name, feature) => {
    const method = persistent[name];
    expect(method).toBeDefined();
    expect(method && (await capabilities()).supports(method, feature)).toBe(true);
  });

  // A remote server may report an address that is reachable in its own network only.
  test.skipIf(process.env['EVENTSTORE_URL'])(
    'a client that looks for the leader by gossip finds this server',
    async () => {
      const client = connectClient(store.url.replace('esdb://', 'esdb+discover://'));
      try {
        const { nextExpectedRevision } = await client.appendToStream(uniqueName('gossip'), numberedEvents(1));
        expect(nextExpectedRevision).toBe(0n);
      } finally {
        await client.dispose();
      }
    },
  );
});
