import { parseConfig, type Config, type Variables } from '#libs/platform/config/index.ts';
import { runProcess } from '#libs/platform/lifecycle/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { startStandalone } from './app.ts';
import { banner } from './banner.ts';
import { parts } from './parts.ts';

/** Runs all of Parley until this process is told to stop: see `runProcess`. */
export function runStandalone(variables: Variables): void {
  // Before the configuration is known to be right, so that errors in it can be logged too.
  const log = createLogger({ level: variables['LOG_LEVEL'] === 'silent' ? 'silent' : 'info' });
  let config: Config | undefined;
  runProcess({
    log,
    stopDelayMs: () => config?.stopDelayMs ?? 0,
    async start(signal) {
      config = parseConfig(variables);
      log.level = config.logLevel;
      const standalone = await startStandalone(config, { ...parts, log }, signal);
      process.stdout.write(banner(standalone, config.bootstrapKey));
      await standalone.firstKey.shown();
      return standalone;
    },
  });
}
