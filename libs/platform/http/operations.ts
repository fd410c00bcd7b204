import { within } from '../lifecycle/index.ts';
import { JSON_TYPE } from './errors.ts';
import type { HttpApp, HttpServerOptions, ReadinessProbe } from './server-options.ts';

interface ProbeResult {
  readonly status: 'ok' | 'down';
  readonly detail?: Readonly<Record<string, unknown>>;
}

const PROBE_MS = 2_000;
/** Requests within this time share one check of the stores. */
const REUSE_MS = 250;

/** `/` names the parts of the API; `/health/live`, `/health/ready` and `/metrics` are for orchestrators. All are public. */
export function operationRoutes(
  app: HttpApp,
  { probes = [], metrics, info }: HttpServerOptions,
  isStopping: () => boolean,
): void {
  const config = { public: true };
  const schema = { hide: true };
  app.get('/', { config, schema }, ({ raw }, reply) => {
    const named = (path: string): string => app.publicAddress.pathOf(raw, path);
    const entry = {
      name: info.title,
      version: info.version,
      documentation: named('/docs'),
      openapi: named('/openapi.json'),
      asyncapi: named('/asyncapi.json'),
      health: named('/health/ready'),
      metrics: named('/metrics'),
    };
    void reply.type(JSON_TYPE).send(JSON.stringify(entry));
  });

  const alive = Buffer.from('{"status":"ok"}');
  app.get('/health/live', { config, schema }, (_request, reply) => {
    void reply.type(JSON_TYPE).header('cache-control', 'no-store').send(alive);
  });

  let latest: { at: number; results: Promise<(readonly [string, ProbeResult])[]> } | undefined;
  app.get('/health/ready', { config, schema }, async (_request, reply) => {
    if (latest === undefined || performance.now() - latest.at > REUSE_MS) {
      const results = Promise.all(probes.map(async (probe) => [probe.name, await runProbe(probe)] as const));
      latest = { at: performance.now(), results };
    }
    const checks = Object.fromEntries(await latest.results);
    const ready = !isStopping() && Object.values(checks).every(({ status }) => status === 'ok');
    void reply.header('cache-control', 'no-store').code(ready ? 200 : 503);
    if (!ready) void reply.header('retry-after', '2');
    return { status: ready ? 'ok' : isStopping() ? 'stopping' : 'down', checks };
  });

  app.get('/metrics', { config, schema }, async (_request, reply) =>
    reply.header('content-type', metrics.contentType).send(await metrics.scrape()),
  );
}

async function runProbe(probe: ReadinessProbe): Promise<ProbeResult> {
  try {
    const { ok, detail } = await within(PROBE_MS, probe.check(), () => NO_ANSWER);
    return { status: ok ? 'ok' : 'down', ...(detail && { detail }) };
  } catch (error) {
    // The owner of the store logs the reason; the message may contain host names.
    return { status: 'down', detail: { reason: error === NO_ANSWER ? NO_ANSWER.message : 'the check failed' } };
  }
}

const NO_ANSWER = new Error(`no answer within ${PROBE_MS} ms`);
