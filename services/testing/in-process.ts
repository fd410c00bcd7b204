import { LocalLog, startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';
import { makeTemporaryFolder } from '#infra/data-folder/index.ts';
import { parseConfig, type Config, type VariableName } from '#libs/platform/config/index.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import { StopSequence, pause, silentLog, StartRefusal } from '#libs/platform/lifecycle/index.ts';
import { createLogger, createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeReadModels } from '#services/features.ts';
import { startStandalone, type Standalone } from '#services/standalone/app.ts';

import { testParley, type TestParley } from './test-parley.ts';

export interface StartParleyOptions {
  /**
   * Any variable of the configuration. `EVENTSTORE_URL` and `REDIS_URL` name running stores: Parley uses them
   * with the data in them, and removes nothing. Without them Parley starts empty ones. The environment variables of the
   * test process have no effect.
   */
  readonly settings?: Readonly<Partial<Record<VariableName, string>>>;
}

/** A Parley in this process, for tests. Its `apiKey` has all scopes. */
export interface StartedParley extends TestParley {
  /**
   * Stops it and removes its data; leaves nothing behind in this process. Later calls wait for the first.
   *
   * @throws Error (rejects) that names the parts that did not stop within `STOP_TIMEOUT_MS`
   */
  stop(): Promise<void>;
  /** Stops it, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Long enough for configured stores that hold data. */
const READ_MODELS_WITHIN_MS = 30_000;

export async function startInProcess({ settings = {} }: StartParleyOptions): Promise<StartedParley> {
  const apiKey = settings.PARLEY_BOOTSTRAP_KEY ?? createApiKey();
  const stops = new StopSequence(silentLog, 60_000);
  try {
    const config = await configOf({ PARLEY_BOOTSTRAP_KEY: apiKey, ...settings }, stops);
    const standalone = await startStandalone(config, {
      log: loggerOf(config),
      // Metrics of the process belong to the test.
      metrics: createMetrics({ processMetrics: false }),
      startEventStore,
    });
    stops.add('Parley', async () => refuseLeftOver(await standalone.stop()));
    await readModelsComplete(standalone);
    const stop = (): Promise<void> => stopAll(stops);
    return { ...(await testParley({ url: standalone.baseUrl, apiKey })), stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stops.stop();
    throw error instanceof StartRefusal ? new Error(`Parley cannot start: ${error.message}`) : error;
  }
}

/** By default: loopback, a free port, no rate limits, no log. */
async function configOf(settings: StartParleyOptions['settings'], stops: StopSequence): Promise<Config> {
  const folder = await makeTemporaryFolder('parley-test-');
  stops.add('temporary folder', () => folder.remove());
  return parseConfig({
    PORT: '0',
    RATE_LIMIT_PER_KEY: '0',
    RATE_LIMIT_PER_ADDRESS: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: folder.path,
    ...settings,
  });
}

/** In this thread: another thread would load the same code again, which takes longer than the rest of the start. */
async function startEventStore({ dataDir }: { readonly dataDir: string }) {
  const store = await startEmbeddedEventStore({ dataDir });
  const local = new LocalLog();
  local.attach(store.localPort);
  return { ...store, local };
}

/** A silent logger needs no flush when the process exits, so it adds no listeners to the process. */
function loggerOf({ logLevel: level }: Config) {
  return level === 'silent' ? createLogger({ level }, { write: () => undefined }) : createLogger({ level });
}

async function readModelsComplete({ platform }: Standalone): Promise<void> {
  const { state } = composeReadModels(platform);
  const deadline = Date.now() + READ_MODELS_WITHIN_MS;
  const never = new AbortController().signal;
  while (!(await state.isComplete().catch(() => false))) {
    if (Date.now() > deadline) throw new Error('Parley did not reach the end of its log within 30 seconds');
    await pause(5, never);
  }
}

function refuseLeftOver(names: readonly string[]): void {
  if (names.length > 0) throw new Error(`not stopped properly: ${names.join(', ')}`);
}

async function stopAll(stops: StopSequence): Promise<void> {
  const failed = await stops.stop();
  if (failed.length > 0) throw new Error(`Parley did not stop properly: ${failed.join(', ')}`);
}
