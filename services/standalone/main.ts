import { parseConfig } from '#libs/platform/config/index.ts';
import { runProcess } from '#libs/platform/lifecycle/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { startStandalone } from './app.ts';
import { banner } from './banner.ts';
import { parts } from './parts.ts';

// Before the configuration is known to be right, so that errors in it can be logged too.
const log = createLogger({ level: process.env['LOG_LEVEL'] === 'silent' ? 'silent' : 'info' });

runProcess({
  log,
  async start() {
    const config = parseConfig(process.env);
    log.level = config.logLevel;
    const standalone = await startStandalone(config, { ...parts, log });
    process.stdout.write(banner(standalone));
    await standalone.firstKey.shown();
    return standalone;
  },
});
