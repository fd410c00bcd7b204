import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeConfig } from '#libs/platform/config/index.ts';
import { configOfRole } from '#services/role-process/app.ts';
import { ROLES } from '#services/roles.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { at, documentsOf, problemsOf, schemaOf, strings, validatorsOf } from './manifests.ts';

const FOLDER = 'infra/kubernetes';
/** Total time that a stop may take, besides its delay. */
const STOP_MS = 30_000;

let objects: readonly Record<string, unknown>[];
let problems: (object: Record<string, unknown>) => readonly string[];

beforeAll(async () => {
  const [{ resources } = { resources: [] }] = await documentsOf(`${FOLDER}/kustomization.yaml`);
  const files = [resources].flat().map(String);
  const present = await readdir(join(import.meta.dirname, '../../..', FOLDER));
  expect([...files, 'kustomization.yaml', 'secret.example.yaml'].toSorted()).toEqual(present.toSorted());
  const all = await Promise.all([...files, 'secret.example.yaml'].map((file) => documentsOf(`${FOLDER}/${file}`)));
  objects = all.flat();

  const { kinds, $defs } = await schemaOf('kubernetes-1.33.json');
  const validator = validatorsOf({ $defs });
  problems = (object) => {
    const pointer = at(kinds, `${String(object['apiVersion'])}/${String(object['kind'])}`, '$ref');
    return problemsOf(typeof pointer === 'string' ? validator(pointer.slice(1)) : undefined, object);
  };
}, 120_000);

const named = (kind: string, name: string): Record<string, unknown> => {
  const found = objects.find((object) => object['kind'] === kind && at(object, 'metadata', 'name') === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
};

describe('infra/kubernetes', { timeout: 120_000 }, () => {
  it('match the schemas of Kubernetes, without unknown fields', () => {
    expect(objects.length).toBeGreaterThan(10);
    for (const object of objects) expect({ object, problems: problems(object) }).toEqual({ object, problems: [] });
  });

  it('do not match with a planted mistake', () => {
    const deployment = named('Deployment', 'gateway');
    const { spec } = deployment;
    const pod = asRecord(at(spec, 'template', 'spec'));
    const withPod = (change: object) => {
      const template = { ...asRecord(at(spec, 'template')), spec: { ...pod, ...change } };
      return { ...deployment, spec: { ...asRecord(spec), template } };
    };
    expect(problems(withPod({}))).toEqual([]);
    expect(problems(withPod({ terminationGracePeriod: 45 }))).not.toEqual([]);
    expect(problems(withPod({ containers: [{ image: 'parley' }] }))).not.toEqual([]);
    expect(problems({ ...deployment, apiVersion: 'apps/v1beta1' })).toEqual(['there is no schema for it']);
  });

  it.each(ROLES)('run $name so that it can be probed, replaced and stopped gracefully', (role) => {
    const { spec } = named('Deployment', role.name);
    const pod = at(spec, 'template', 'spec');
    const labels = at(spec, 'template', 'metadata', 'labels');
    expect(at(spec, 'selector', 'matchLabels')).toEqual(labels);
    expect(at(named('PodDisruptionBudget', role.name), 'spec', 'selector', 'matchLabels')).toEqual(labels);
    const container = at(pod, 'containers', 0);
    expect(at(container, 'args')).toEqual([role.name]);
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

    const { data } = named('ConfigMap', 'parley');
    const { stringData } = named('Secret', 'parley');
    const environment = { ...strings(data), ...strings(stringData), PARLEY_TOKEN_SECRET: 'x'.repeat(64) };
    const known = new Set<string>(describeConfig({}).map(({ name }) => name));
    expect(Object.keys(environment).filter((variable) => !known.has(variable))).toEqual([]);
    const { stopDelayMs } = configOfRole(role, environment);
    expect(Number(at(pod, 'terminationGracePeriodSeconds')) * 1_000).toBeGreaterThan(stopDelayMs + STOP_MS);
  });

  it.each(['gateway', 'realtime'])('%s is reached by a service and scaled by its load', (role) => {
    const labels = at(named('Deployment', role), 'spec', 'template', 'metadata', 'labels');
    expect(at(named('Service', role), 'spec', 'selector')).toEqual(labels);
    expect(at(named('HorizontalPodAutoscaler', role), 'spec', 'scaleTargetRef', 'name')).toBe(role);
    // A fixed count would conflict with the autoscaler.
    expect(at(named('Deployment', role), 'spec', 'replicas')).toBeUndefined();
    const paths = [at(named('Ingress', role), 'spec', 'rules', 0, 'http', 'paths') ?? []].flat();
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) expect(at(path, 'backend', 'service', 'name')).toBe(role);
  });
});
