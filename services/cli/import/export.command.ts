import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

import { Command } from 'commander';

import type { InteractionQueries } from '#libs/features/interactions/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import { ORGANIZATION_OPTION, organizationOf, withSession } from '../command-context.ts';
import type { CliParts, OrganizationOptions } from '../command-context.ts';
import { CliError, fileProblem, isFileError, isReaderGone, isWriteError } from '../errors.ts';

interface ExportOptions extends OrganizationOptions {
  readonly output?: string;
}

export function exportCommand(parts: CliParts): Command {
  return new Command('export')
    .description('Export a channel as JSON lines: the channel, then its interactions by sequence')
    .argument('<channel id>')
    .option('--output <file>', 'default: standard output')
    .option(...ORGANIZATION_OPTION)
    .action((id: string, options: ExportOptions) => run(parts, id, options));
}

async function run(parts: CliParts, id: string, options: ExportOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const { channels, interactions } = session.features;
    const channel = await channels.channel(organizationId, id);
    if (channel === null) throw new CliError(`the organization has no channel ${id}`);
    const lines = linesOf(channel.json, interactions.queries, organizationId, id);
    await write(parts, options.output, lines);
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

const PAGE = 200;
/** Reads as a service does: no reaction counts as its own. */
const READER = { userId: null };
const FILTER = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;

/** The channel, then its interactions by sequence, in the form of the REST API. */
async function* linesOf(
  channel: Buffer,
  interactions: InteractionQueries,
  organizationId: EntityId,
  id: EntityId,
): AsyncGenerator<string> {
  yield `${channel.toString()}\n`;
  for (let after: string | null = null, more = true; more;) {
    const page = await interactions.list(organizationId, id, FILTER, { size: PAGE, offset: 0, after }, READER);
    if (page === null) return;
    for (const item of page.items) yield `${item.toString()}\n`;
    after = page.last;
    more = page.hasNext && after !== null;
  }
}
