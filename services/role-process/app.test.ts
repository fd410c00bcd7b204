import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { configOfRole, startRoleProcess } from './app.ts';
import { ROLE_NAMES } from '#libs/platform/config/role-names.ts';

const COMPLETE = {
  PARLEY_TOKEN_SECRET: 'sixteen letters!',
  // Nobody is there, and nobody is asked.
  EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
  REDIS_URL: 'redis://127.0.0.1:1',
  KAFKA_BROKERS: '127.0.0.1:1',
};

describe('the configuration of a role', () => {
  it.each(ROLE_NAMES)('of %s is taken when nothing is missing, whatever ROLES says', (name) => {
    expect(configOfRole(name, { ...COMPLETE, ROLES: 'gateway,relay' }).roles).toEqual([name]);
  });

  it('names everything that is missing', () => {
    expect(() => configOfRole('realtime', {})).toThrow(
      [
        'PARLEY_TOKEN_SECRET is missing; the role realtime needs it',
        'EVENTSTORE_URL is missing; the role realtime needs it',
        'REDIS_URL is missing; the role realtime needs it',
      ].join('\n'),
    );
  });

  it('refuses a first key that cannot be one', () => {
    expect(() => configOfRole('gateway', { ...COMPLETE, PARLEY_BOOTSTRAP_KEY: 'weak' })).toThrow(
      /^PARLEY_BOOTSTRAP_KEY must have /,
    );
  });
});

it.each(ROLE_NAMES)('a process of %s stops properly while all of its stores are away', async (name) => {
  const config = configOfRole(name, { ...COMPLETE, PORT: '0' });
  const started = await startRoleProcess(name, config, createLogger({ level: 'silent' }));
  expect(await started.stop()).toEqual([]);
});

it('a role process tells which port is busy and how to choose another', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const config = configOfRole('projector', { ...COMPLETE, PORT: String(port) });
    await expect(startRoleProcess('projector', config, createLogger({ level: 'silent' }))).rejects.toThrow(
      `port ${port} of 127.0.0.1 is in use; choose another: PORT=${port + 1} npx parley projector`,
    );
  } finally {
    server.close();
  }
});
