import { beforeAll, describe, expect, it } from 'vitest';
import { describeConfig } from '#libs/platform/config/index.ts';
import { configOfRole } from '#services/role-process/run.ts';
import { ROLES } from '#services/roles.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { at, documentsOf, fileOf, problemsOf, schemaOf, strings, validatorsOf } from './manifests.ts';

let compose: Record<string, unknown>;
let services: Record<string, unknown>;
let problems: (value: unknown) => readonly string[];

beforeAll(async () => {
  [compose = {}] = await documentsOf('infra/compose.yaml');
  services = asRecord(compose['services']);
  // Schema of compose-go 2.16 (Apache-2.0), with which `docker compose` reads its files.
  const validate = validatorsOf(await schemaOf('compose-spec.json'))();
  problems = (value) => problemsOf(validate, value);
}, 120_000);

describe('infra/compose.yaml', { timeout: 120_000 }, () => {
  it.each(['infra/compose.yaml', 'infra/compose.kurrentdb.yaml'])(
    '%s matches the Compose Specification',
    async (path) => {
      for (const document of await documentsOf(path)) expect(problems(document)).toEqual([]);
    },
  );

  it('a planted mistake does not match', () => {
    const withService = (change: object) => ({ services: { one: { image: 'parley', ...change } } });
    expect(problems(withService({}))).toEqual([]);
    expect(problems(withService({ comand: ['gateway'] }))).not.toEqual([]);
    expect(problems(withService({ healthcheck: { test: 5 } }))).not.toEqual([]);
    expect(problems(withService({ depends_on: { redis: { condition: 'healthy' } } }))).not.toEqual([]);
  });

  it('runs two of each role, with everything that a role needs, under known names', () => {
    const known = new Set<string>(describeConfig({}).map(({ name }) => name));
    for (const role of ROLES) {
      for (const name of [`${role.name}-1`, `${role.name}-2`]) {
        const service = asRecord(services[name]);
        expect(service['command']).toEqual([role.name]);
        const environment = strings(service['environment']);
        expect(Object.keys(environment).filter((variable) => !known.has(variable))).toEqual([]);
        // Compose would not start without it.
        expect(environment['PARLEY_TOKEN_SECRET']).toMatch(/^\$\{PARLEY_TOKEN_SECRET:\?/);
        expect(configOfRole(role, interpolated(environment)).stopDelayMs).toBe(5_000);
      }
    }
  });

  it('names only declared services and volumes, and has a health check for each service', async () => {
    const volumes = Object.keys(asRecord(compose['volumes']));
    for (const [name, service] of Object.entries(services)) {
      expect({ name, healthcheck: at(service, 'healthcheck', 'test') }).toEqual({
        name,
        healthcheck: expect.anything(),
      });
      const needed = Object.keys(asRecord(at(service, 'depends_on') ?? {}));
      expect(needed.filter((one) => services[one] === undefined)).toEqual([]);
      const mounted = [at(service, 'volumes') ?? []].flat().map((volume) => String(volume).split(':')[0] ?? '');
      expect(mounted.filter((volume) => !volume.startsWith('./') && !volumes.includes(volume))).toEqual([]);
      for (const file of mounted.filter((volume) => volume.startsWith('./'))) await fileOf(`infra/${file}`);
    }
    const upstreams = (await fileOf('infra/compose/Caddyfile')).match(/[\w-]+(?=:8080)/g) ?? [];
    expect(upstreams.toSorted()).toEqual(['gateway-1', 'gateway-2', 'realtime-1', 'realtime-2']);
  });
});

/** Fills in `${NAME:-default}` and `${NAME:?why}`, as compose does. */
function interpolated(environment: Record<string, string>): Record<string, string> {
  const fill = (value: string): string =>
    value.replace(/\$\{\w+:([-?])(.*)\}/, (_, kind: string, rest: string) => (kind === '-' ? rest : 'x'.repeat(64)));
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fill(value)]));
}
