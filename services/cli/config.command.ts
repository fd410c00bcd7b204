import { Command } from 'commander';
import { describeConfig } from '#libs/platform/config/index.ts';
import { printVariables } from './command-context.ts';
import type { CliParts, OutputOptions } from './command-context.ts';

export function configCommand(parts: CliParts): Command {
  return new Command('config')
    .description('Show every setting with its value and its source; secrets are hidden')
    .option('--json', 'print JSON')
    .action((options: OutputOptions) => printVariables(parts, options, describeConfig(parts.environment)));
}
