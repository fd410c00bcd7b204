/** What must hold of the rendered manifests. */
import { deepStrictEqual, ok } from 'node:assert/strict';

import { describeConfig } from '#libs/platform/config/index.ts';
import { configOfRole } from '#services/role-process/run.ts';
import { ROLES } from '#services/roles.ts';
import { at, strings } from '#test/integration/deployment/manifests.ts';

export type Manifest = Readonly<Record<string, unknown>>;

/** Total time that a stop may take, besides its delay. */
const STOP_MS = 30_000;
const SCALED = ['gateway', 'realtime'];

const nameOf = (object: Manifest): string => String(at(object, 'metadata', 'name'));

function named(objects: readonly Manifest[], kind: string, name: string): Manifest {
  const found = objects.find((object) => object['kind'] === kind && nameOf(object) === name);
  ok(found !== undefined, `there is no ${kind} ${name}`);
  return found;
}

/** The one whose name has a hash. */
function generated(objects: readonly Manifest[], kind: string): Manifest {
  const found = objects.find((object) => object['kind'] === kind && /^parley-[a-z0-9]+$/.test(nameOf(object)));
  ok(found !== undefined, `there is no ${kind} with a hash`);
  return found;
}

export const checks: Readonly<Record<string, (objects: readonly Manifest[]) => void>> = {
  'each role has a Deployment, and nothing else has'(objects) {
    const deployments = objects.filter(({ kind }) => kind === 'Deployment').map(nameOf);
    deepStrictEqual(deployments.toSorted(), ROLES.map(({ name }) => name).toSorted());
  },

  'pods have selectors of their own, a disruption budget and an even spread'(objects) {
    for (const { name } of ROLES) {
      const { spec } = named(objects, 'Deployment', name);
      const labels = at(spec, 'template', 'metadata', 'labels');
      deepStrictEqual(labels, { 'app.kubernetes.io/name': 'parley', 'app.kubernetes.io/component': name });
      deepStrictEqual(at(spec, 'selector', 'matchLabels'), labels);
      deepStrictEqual(at(named(objects, 'PodDisruptionBudget', name), 'spec', 'selector', 'matchLabels'), labels);
      for (const index of [0, 1]) {
        const spread = at(spec, 'template', 'spec', 'topologySpreadConstraints', index);
        deepStrictEqual(at(spread, 'labelSelector', 'matchLabels'), labels);
      }
      deepStrictEqual(at(spec, 'template', 'spec', 'containers', 0, 'args'), [name]);
    }
  },

  'processes accept the configuration, and stop in time'(objects) {
    const configuration = generated(objects, 'ConfigMap');
    const secret = generated(objects, 'Secret');
    const decoded = Object.entries(strings(secret['data'])).map(([name, value]) => [name, atob(value)]);
    const environment = {
      ...strings(configuration['data']),
      ...(Object.fromEntries(decoded) as Record<string, string>),
      PARLEY_TOKEN_SECRET: 'x'.repeat(64),
    };
    const known = new Set<string>(describeConfig({}).map(({ name }) => name));
    deepStrictEqual(
      Object.keys(environment).filter((name) => !known.has(name)),
      [],
    );
    for (const role of ROLES) {
      const pod = at(named(objects, 'Deployment', role.name), 'spec', 'template', 'spec');
      const sources = [at(pod, 'containers', 0, 'envFrom') ?? []].flat();
      const names = sources.map((one) => at(one, 'configMapRef', 'name') ?? at(one, 'secretRef', 'name'));
      deepStrictEqual(names, [nameOf(configuration), nameOf(secret)]);
      const { stopDelayMs } = configOfRole(role, environment);
      ok(Number(at(pod, 'terminationGracePeriodSeconds')) * 1_000 > stopDelayMs + STOP_MS);
    }
  },

  'scaled roles have a service, a route and no fixed count, and scale by what one core does'(objects) {
    for (const role of SCALED) {
      const { spec } = named(objects, 'Deployment', role);
      deepStrictEqual(at(spec, 'replicas'), undefined);
      deepStrictEqual(at(named(objects, 'Service', role), 'spec', 'selector'), at(spec, 'selector', 'matchLabels'));
      const scaler = named(objects, 'HorizontalPodAutoscaler', role);
      deepStrictEqual(at(scaler, 'spec', 'scaleTargetRef', 'name'), role);
      const cores = /^(\d+)m$/.exec(String(at(scaler, 'spec', 'metrics', 0, 'resource', 'target', 'averageValue')));
      ok(Number(cores?.[1]) >= 500 && Number(cores?.[1]) < 1_000, 'a process never uses two cores');
      const routes = objects.filter(({ kind }) => kind === 'Ingress' || kind === 'HTTPRoute');
      ok(routes.some((route) => JSON.stringify(route).includes(`"name":"${role}"`)));
    }
  },
};
