import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { ROLES, type RoleName } from '#services/roles.ts';
import { startRoleProcess } from './app.ts';
import { configOfRole } from './run.ts';

const COMPLETE = {
  PARLEY_TOKEN_SECRET: 'sixteen letters!',
  // Addresses at which nothing listens.
  EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
  REDIS_URL: 'redis://127.0.0.1:1',
  KAFKA_BROKERS: '127.0.0.1:1',
};

describe('the configuration of a role', () => {
  it.each(ROLES)('of $name is complete when nothing is missing, whatever ROLES contains', (role) => {
    expect(configOfRole(role, { ...COMPLETE, ROLES: 'gateway,relay' }).roles).toEqual([role.name]);
  });

  it('names all missing variables', () => {
    expect(() => configOfRole(named('realtime'), {})).toThrow(
      [
        'PARLEY_TOKEN_SECRET is missing; the role realtime needs it',
        'EVENTSTORE_URL is missing; the role realtime needs it',
        'REDIS_URL is missing; the role realtime needs it',
      ].join('\n'),
    );
  });
});

it('a role process refuses a first key of the wrong form', async () => {
  const config = configOfRole(named('gateway'), { ...COMPLETE, PARLEY_BOOTSTRAP_KEY: 'weak', PORT: '0' });
  await expect(startRoleProcess(named('gateway'), config, createLogger({ level: 'silent' }))).rejects.toThrow(
    /^PARLEY_BOOTSTRAP_KEY must have /,
  );
});

it.each(ROLES)('a process of $name stops properly while all its stores are unavailable', async (role) => {
  const config = configOfRole(role, { ...COMPLETE, PORT: '0' });
  const started = await startRoleProcess(role, config, createLogger({ level: 'silent' }));
  expect(await started.stop()).toEqual([]);
});

it('a role process names the busy port and how to choose another', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const config = configOfRole(named('projector'), { ...COMPLETE, PORT: String(port) });
    await expect(startRoleProcess(named('projector'), config, createLogger({ level: 'silent' }))).rejects.toThrow(
      `port ${port} of 127.0.0.1 is in use; choose another: PORT=${port + 1} npx parley projector`,
    );
  } finally {
    server.close();
  }
});

function named(name: RoleName) {
  const role = ROLES.find((one) => one.name === name);
  if (role === undefined) throw new Error(`there is no role ${name}`);
  return role;
}
