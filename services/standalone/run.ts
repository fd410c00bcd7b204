import { parseConfig, type Config, type Variables } from '#libs/platform/config/index.ts';
import { runProcess } from '#libs/platform/lifecycle/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import type { Standalone } from './app.ts';

/**
 * Runs all of Parley until this process receives a signal to stop: see `runProcess`.
 *
 * @param withBanner whether a person reads the output. Otherwise it is JSON lines alone, and as logs are kept, the first key
 *   is not among them: it stays in its file
 */
export function runStandalone(variables: Variables, { withBanner }: { readonly withBanner: boolean }): void {
  // Before the configuration is parsed, so that its errors can be logged too.
  const log = createLogger({ level: variables['LOG_LEVEL'] === 'silent' ? 'silent' : 'info' });
  let config: Config | undefined;
  runProcess({
    log,
    stopDelayMs: () => config?.stopDelayMs ?? 0,
    async start(signal) {
      config = parseConfig(variables);
      log.level = config.logLevel;
      // Only now: to load the application takes longer than to refuse a variable.
      const { startStandalone } = await import('./app.ts');
      signal.throwIfAborted();
      const standalone = await startStandalone(config, { log }, signal);
      if (withBanner) {
        process.stdout.write(banner(standalone, config));
        await standalone.firstKey.shown();
      } else {
        log.info(...started(standalone));
      }
      return standalone;
    },
  });
}

/** The line of the log in place of the banner. */
function started({ baseUrl, dataDir, firstKey }: Standalone): [object, string] {
  const { apiKey, file } = firstKey;
  if (apiKey === null) return [{ url: baseUrl, dataDir }, 'Parley is running'];
  return [
    { url: baseUrl, dataDir, keyFile: file },
    'Parley is running; keyFile holds the first API key: keep the key, and delete the file',
  ];
}

/** The text that is printed once everything runs: addresses, and the first key, which is never shown again. */
export function banner(
  { baseUrl, dataDir, firstKey }: Pick<Standalone, 'baseUrl' | 'dataDir' | 'firstKey'>,
  config: Pick<Config, 'bootstrapKey' | 'command'>,
): string {
  const rows: [string, string][] = [
    ['API', `${baseUrl}/api/v1`],
    ['Docs', `${baseUrl}/docs`],
    ['Data', dataDir],
    ['API key', keyText(firstKey.apiKey, config)],
    ['Stop', 'Ctrl-C'],
  ];
  return ['', 'Parley is running.', '', ...rows.map(([label, value]) => `  ${label.padEnd(9)}${value}`), '', ''].join(
    '\n',
  );
}

function keyText(apiKey: string | null, { bootstrapKey, command }: Pick<Config, 'bootstrapKey' | 'command'>): string {
  if (apiKey !== null) return `${apiKey}   (shown only now: keep it)`;
  const known = bootstrapKey === undefined ? 'created at the first start' : 'that of PARLEY_BOOTSTRAP_KEY';
  return `${known}; ${command} keys create creates another`;
}
