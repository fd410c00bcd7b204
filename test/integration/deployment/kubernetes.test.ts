/** The files of infra/kubernetes, without rendering them: `npm run test:kubernetes` does. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeConfig } from '#libs/platform/config/index.ts';
import { configOfRole } from '#services/role-process/run.ts';
import { ROLES } from '#services/roles.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { at, documentsOf, problemsOf, schemaOf, validatorsOf } from './manifests.ts';

const FOLDER = 'infra/kubernetes';
/** Total time that a stop may take, besides its delay. */
const STOP_MS = 30_000;
/** Whole objects; the other files are kustomizations, and routes of the Gateway API. */
const FILES = [
  'service-account.yaml',
  'network-policy.yaml',
  'process/process.yaml',
  ...['gateway', 'realtime'].flatMap((role) => [`${role}/service.yaml`, `${role}/autoscaler.yaml`]),
  'ingress-nginx/ingress.yaml',
];

let objects: readonly Record<string, unknown>[];
let problems: (object: Record<string, unknown>) => readonly string[];

beforeAll(async () => {
  objects = (await Promise.all(FILES.map((file) => documentsOf(`${FOLDER}/${file}`)))).flat();
  const { kinds, $defs } = await schemaOf('kubernetes-1.33.json');
  const validator = validatorsOf({ $defs });
  problems = (object) => {
    const pointer = at(kinds, `${String(object['apiVersion'])}/${String(object['kind'])}`, '$ref');
    return problemsOf(typeof pointer === 'string' ? validator(pointer.slice(1)) : undefined, object);
  };
}, 120_000);

async function variablesOf(file: string): Promise<Record<string, string>> {
  const text = await readFile(join(import.meta.dirname, '../../..', FOLDER, file), 'utf8');
  return Object.fromEntries(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']));
}

const deployment = (): Record<string, unknown> => objects.find(({ kind }) => kind === 'Deployment') ?? {};

describe('infra/kubernetes', { timeout: 120_000 }, () => {
  it('match the schemas of Kubernetes, without unknown fields', () => {
    expect(objects.length).toBeGreaterThan(10);
    for (const object of objects) expect({ object, problems: problems(object) }).toEqual({ object, problems: [] });
  });

  it('do not match with a planted mistake', () => {
    const { spec } = deployment();
    const pod = asRecord(at(spec, 'template', 'spec'));
    const withPod = (change: object) => {
      const template = { ...asRecord(at(spec, 'template')), spec: { ...pod, ...change } };
      return { ...deployment(), spec: { ...asRecord(spec), template } };
    };
    expect(problems(withPod({}))).toEqual([]);
    expect(problems(withPod({ terminationGracePeriod: 45 }))).not.toEqual([]);
    expect(problems(withPod({ containers: [{ image: 'parley' }] }))).not.toEqual([]);
    expect(problems({ ...deployment(), apiVersion: 'apps/v1beta1' })).toEqual(['there is no schema for it']);
  });

  it('run processes so that they can be probed, and have no rights', () => {
    const pod = at(deployment(), 'spec', 'template', 'spec');
    const container = at(pod, 'containers', 0);
    expect(at(container, 'readinessProbe', 'httpGet', 'path')).toBe('/health/ready');
    expect(at(container, 'livenessProbe', 'httpGet', 'path')).toBe('/health/live');
    expect(at(container, 'securityContext')).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(at(pod, 'securityContext')).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it.each(ROLES)('run $name with a configuration that it accepts, and stop it in time', async (role) => {
    const [root] = await documentsOf(`${FOLDER}/kustomization.yaml`);
    expect(root?.['resources']).toContain(role.name);
    const [own] = await documentsOf(`${FOLDER}/${role.name}/kustomization.yaml`);
    expect(own?.['resources']).toContain('../process');
    expect(JSON.stringify(own)).toContain(`args: [${role.name}]`);
    const variables = { ...(await variablesOf('config.env')), ...(await variablesOf('secret.example.env')) };
    const known = new Set<string>(describeConfig({}).map(({ name }) => name));
    expect(Object.keys(variables).filter((variable) => !known.has(variable))).toEqual([]);
    const { stopDelayMs } = configOfRole(role, { ...variables, PARLEY_TOKEN_SECRET: 'x'.repeat(64) });
    const seconds = Number(at(deployment(), 'spec', 'template', 'spec', 'terminationGracePeriodSeconds'));
    expect(seconds * 1_000).toBeGreaterThan(stopDelayMs + STOP_MS);
  });
});
