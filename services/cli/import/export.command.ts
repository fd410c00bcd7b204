import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

import { Command } from 'commander';

import { type CliParts, ORGANIZATION_OPTION, type OrganizationOptions, withSession } from '../command-context.ts';
import { CliError, fileProblem, isFileError, isReaderGone, isWriteError } from '../errors.ts';
import { organizationOf } from '../session.ts';
import { ChannelExport } from './channel-export.ts';

interface ExportOptions extends OrganizationOptions {
  readonly output?: string;
}

export function exportCommand(parts: CliParts): Command {
  return new Command('export')
    .description('Export a channel and its threads as JSON lines: each channel, then its interactions by sequence')
    .argument('<channel id>')
    .option('--output <file>', 'default: standard output')
    .option(...ORGANIZATION_OPTION)
    .action((id: string, options: ExportOptions) => run(parts, id, options));
}

async function run(parts: CliParts, id: string, options: ExportOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const { channels, users, agents } = session.features;
    const channel = await channels.channel(organizationId, id);
    if (channel === null) throw new CliError(`the organization has no channel ${id}`);
    const exported = new ChannelExport({ channels, users, agents, organizationId });
    await write(parts, options.output, exported.lines(id, channel.json));
  });
}

/** Creates the file atomically. The reader of standard output may close it early. */
async function write(parts: CliParts, output: string | undefined, lines: AsyncIterable<string>): Promise<void> {
  if (output === undefined) {
    try {
      for await (const line of lines) await parts.write(line);
    } catch (error) {
      if (!isReaderGone(error)) throw error;
    }
    return;
  }
  const next = `${output}.part`;
  try {
    await pipeline(lines, createWriteStream(next));
    await rename(next, output);
  } catch (error) {
    await rm(next, { force: true });
    throw isFileError(error) || isWriteError(error)
      ? new CliError(`${output} cannot be written: ${fileProblem(error)}`)
      : error;
  }
}
