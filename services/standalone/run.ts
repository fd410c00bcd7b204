import { parseConfig, type Config, type Variables } from '#libs/platform/config/index.ts';
import { runProcess } from '#libs/platform/lifecycle/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { startStandalone, type Standalone } from './app.ts';

/** Runs all of Parley until this process receives a signal to stop: see `runProcess`. */
export function runStandalone(variables: Variables): void {
  // Before the configuration is parsed, so that its errors can be logged too.
  const log = createLogger({ level: variables['LOG_LEVEL'] === 'silent' ? 'silent' : 'info' });
  let config: Config | undefined;
  runProcess({
    log,
    stopDelayMs: () => config?.stopDelayMs ?? 0,
    async start(signal) {
      config = parseConfig(variables);
      log.level = config.logLevel;
      const standalone = await startStandalone(config, { log }, signal);
      process.stdout.write(banner(standalone, config.bootstrapKey));
      await standalone.firstKey.shown();
      return standalone;
    },
  });
}

/** The text that is printed once everything runs: addresses, and the first key, which is never shown again. */
export function banner(
  { baseUrl, dataDir, firstKey }: Pick<Standalone, 'baseUrl' | 'dataDir' | 'firstKey'>,
  bootstrapKey: string | undefined,
): string {
  const rows: [string, string][] = [
    ['API', `${baseUrl}/api/v1`],
    ['Docs', `${baseUrl}/docs`],
    ['Data', dataDir],
    ['API key', keyText(firstKey.apiKey, bootstrapKey)],
    ['Stop', 'Ctrl-C'],
  ];
  return ['', 'Parley is running.', '', ...rows.map(([label, value]) => `  ${label.padEnd(9)}${value}`), '', ''].join(
    '\n',
  );
}

function keyText(apiKey: string | null, bootstrapKey: string | undefined): string {
  if (apiKey !== null) return `${apiKey}   (shown only now: keep it)`;
  const known = bootstrapKey === undefined ? 'shown at the first start' : 'that of PARLEY_BOOTSTRAP_KEY';
  return `${known}; npx parley keys create creates another`;
}
