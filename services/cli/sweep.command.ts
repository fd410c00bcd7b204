import { Command } from 'commander';

import { BLOB_REFERENCES } from '#services/features.ts';
import { sweepBlobs } from '#services/worker/blob-sweep.ts';

import { interruptible, printOne, withSession, type CliParts, type OutputOptions } from './command-context.ts';

export function sweepCommand(parts: CliParts): Command {
  return new Command('sweep')
    .description('Remove the files of media that nothing names, as workers do each day; safe beside a running Parley')
    .option('--json', 'print JSON')
    .action((options: OutputOptions) => run(parts, options));
}

async function run(parts: CliParts, options: OutputOptions): Promise<void> {
  const work = (signal: AbortSignal): Promise<void> =>
    withSession(parts, async ({ platform }) => {
      const { kept, removed, removedBytes } = await sweepBlobs(platform, { references: BLOB_REFERENCES, signal });
      printOne(parts, options, { kept, removed, removed_bytes: removedBytes });
    });
  await interruptible(parts, work, 'interrupted; the next sweep removes the rest');
}
