/** Our side of the import: the code of `npx parley import`, from the file to the stores. */
import { newId } from '#libs/kernel/ids.ts';
import { ImportTarget } from '#services/cli/import/import-target.ts';
import { StoreRetry } from '#services/cli/import/store-retry.ts';
import { openSource } from '#services/cli/import/open-source.ts';
import { NOTHING_YET, runImport } from '#services/cli/import/run-import.ts';
import { composeFeatures } from '#services/features.ts';

import { answerTasks } from '../child-process.ts';
import type { ImportAnswer, ImportTask } from '../import.benchmark.ts';
import { openBenchPlatform } from './bench-platform.ts';

answerTasks<ImportTask, ImportAnswer>(async ({ file, ...urls }) => {
  const failures: string[] = [];
  const { platform, check } = await openBenchPlatform(urls);
  const { channels, users, state } = composeFeatures(platform);
  // The log is empty, so the read models hold all of it.
  const start = await state.begin();
  await state.save(start, null, true);
  const target = new ImportTarget(
    {
      channels,
      users,
      agents: { find: async () => null },
      organizations: { summary: async () => null, application: async () => null },
      organizationId: newId(),
    },
    new StoreRetry({ waitMs: 0, signal: new AbortController().signal }),
  );
  const { source } = await openSource(file, null);

  const cpu = process.cpuUsage();
  const started = performance.now();
  const { counts } = await runImport(source, target, {
    from: { checkpoint: 0, counts: NOTHING_YET },
    signal: new AbortController().signal,
    observer: {
      bad: ({ reason }) => void failures.push(reason),
      skipped: () => undefined,
      leftOut: () => undefined,
      advanced: () => undefined,
    },
  });
  const seconds = (performance.now() - started) / 1000;
  const { user: own, system } = process.cpuUsage(cpu);
  check();
  if (failures.length > 0) throw new Error(failures[0]);
  const messages = counts.imported;
  return { messages, rate: messages / seconds, cpuMicros: (own + system) / messages };
});
