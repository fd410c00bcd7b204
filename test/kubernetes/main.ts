/**
 * `npm run test:kubernetes`: renders infra/kubernetes with each of its components, and checks what `kubectl apply` would
 * send: by the schemas of Kubernetes and of the Gateway API (kubeconform, strictly), by kube-score, and against Parley's
 * own roles and configuration. Not part of `npm test`: it needs Go and its registry.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';

import { checks, type Manifest } from './checks.ts';

const ROOT = join(import.meta.dirname, '../..');
const TOOLS = join(ROOT, 'node_modules/.cache/parley-kubernetes');
const PROGRAMS = {
  kustomize: 'sigs.k8s.io/kustomize/kustomize/v5@v5.7.1',
  kubeconform: 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0',
  'kube-score': 'github.com/zegl/kube-score/cmd/kube-score@v1.20.0',
};
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.3.0';
const COMPONENTS = ['gateway-api', 'ingress-nginx'];

/** What kube-score asks for, and these manifests mean otherwise. */
const MEANT = [
  // The user of the image.
  'container-security-context-user-group-id',
  // A version has one image.
  'container-image-pull-policy',
  // Pods are spread by topologySpreadConstraints, which kube-score does not read.
  'deployment-has-host-podantiaffinity',
];

const run = promisify(execFile);
const print = (line: string): boolean => process.stdout.write(`${line}\n`);
let failures = 0;

async function check(name: string, work: () => unknown): Promise<void> {
  try {
    await work();
    print(`ok     ${name}`);
  } catch (error) {
    failures += 1;
    const { stdout = '', stderr = '', message } = error as { stdout?: string; stderr?: string; message: string };
    print(`FAILED ${name}: ${`${stdout}${stderr}`.trim() || message}`);
  }
}

await mkdir(TOOLS, { recursive: true });
for (const [name, source] of Object.entries(PROGRAMS)) {
  if (!existsSync(join(TOOLS, name))) await run('go', ['install', source], { env: { ...process.env, GOBIN: TOOLS } });
}
const folder = await mkdtemp(join(tmpdir(), 'parley-kubernetes-'));
try {
  const schemas = join(folder, 'schemas');
  await writeSchemas(schemas);
  for (const component of COMPONENTS) await tryComponent(component, schemas);
} finally {
  await rm(folder, { recursive: true, force: true });
}
print(failures === 0 ? 'kubernetes: all passed' : `kubernetes: ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);

async function tryComponent(component: string, schemas: string): Promise<void> {
  const source = join(folder, component);
  await cp(join(ROOT, 'infra/kubernetes'), source, { recursive: true });
  await cp(join(source, 'secret.example.env'), join(source, 'secret.env'));
  const kustomization = join(source, 'kustomization.yaml');
  const text = await readFile(kustomization, 'utf8');
  await writeFile(kustomization, text.replace(/components:\n {2}- .*/, `components:\n  - ${component}`));
  const render = async (): Promise<string> => {
    const { stdout } = await run(join(TOOLS, 'kustomize'), ['build', source], { maxBuffer: 2 ** 26 });
    return stdout;
  };
  const rendered = await render();
  const file = join(folder, `${component}.yaml`);
  await writeFile(file, rendered);
  const objects = parseAllDocuments(rendered).map((document) => document.toJS() as Manifest);

  await check(`${component}: kubeconform`, () =>
    run(join(TOOLS, 'kubeconform'), ['-strict', '-schema-location', `${schemas}/{{.ResourceKind}}.json`, file]),
  );
  await check(`${component}: kubeconform finds a planted mistake`, async () => {
    const wrong = join(folder, 'wrong.yaml');
    await writeFile(wrong, rendered.replaceAll('terminationGracePeriodSeconds', 'terminationGracePeriod'));
    const args = ['-strict', '-schema-location', `${schemas}/{{.ResourceKind}}.json`, wrong];
    const found = await run(join(TOOLS, 'kubeconform'), args).catch((error: unknown) => error);
    if (!(found instanceof Error)) throw new Error('it is not found');
  });
  await check(`${component}: kube-score`, () => {
    const ignored = MEANT.flatMap((name) => ['--ignore-test', name]);
    // Throttling costs more latency than sharing a node.
    const args = [
      'score',
      '--output-format',
      'ci',
      '--exit-one-on-warning',
      '--ignore-container-cpu-limit',
      ...ignored,
    ];
    return run(join(TOOLS, 'kube-score'), [...args, file]);
  });
  for (const [name, holds] of Object.entries(checks)) await check(`${component}: ${name}`, () => holds(objects));
  await check(`${component}: a changed variable replaces the pods`, async () => {
    await writeFile(join(source, 'config.env'), 'HOST=::\n');
    const names = (of: string): string[] => of.match(/name: parley-\w+/g) ?? [];
    const [before, after] = [names(rendered), names(await render())];
    if (before.length < 10 || before.every((name, index) => name === after[index])) throw new Error('they stay');
  });
}

/** The schemas of kinds, one file each. */
async function writeSchemas(to: string): Promise<void> {
  await mkdir(to);
  const file = join(ROOT, 'test/fixtures/schemas/kubernetes-1.33.json');
  const { kinds, $defs } = JSON.parse(await readFile(file, 'utf8')) as { kinds: Record<string, object>; $defs: object };
  for (const [name, schema] of Object.entries(kinds)) {
    const kind = name.split('/').at(-1)?.toLowerCase();
    await writeFile(join(to, `${kind}.json`), JSON.stringify({ ...schema, $defs }));
  }
  await writeFile(join(folder, 'go.mod'), 'module example.org/schemas\n\ngo 1.24\n');
  const { stdout } = await run('go', ['mod', 'download', '-json', GATEWAY_API], { cwd: folder });
  const { Dir: module } = JSON.parse(stdout) as { Dir: string };
  const path = join(module, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml');
  const definition = parse(await readFile(path, 'utf8')) as {
    spec: { versions: { name: string; schema: { openAPIV3Schema: object } }[] };
  };
  const version = definition.spec.versions.find(({ name }) => name === 'v1');
  await writeFile(join(to, 'httproute.json'), JSON.stringify(strict(version?.schema.openAPIV3Schema)));
}

/** Refuses members that the schema does not know, as the server would drop them. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const made = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, strict(value)]));
  const isObject = 'properties' in made && made['type'] === 'object' && !('additionalProperties' in made);
  return isObject ? { ...made, additionalProperties: false } : made;
}
