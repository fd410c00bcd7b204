import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { Command } from 'commander';

import type { Channels } from '#libs/features/channels/index.ts';
import type { InteractionQueries } from '#libs/features/interactions/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import { withSession } from '../command-context.ts';
import type { CliParts } from '../command-context.ts';
import { CliError } from '../errors.ts';
import { ORGANIZATION_OPTION, organizationOf } from '../organization-option.ts';
import type { OrganizationOptions } from '../organization-option.ts';

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
    const queries = { channels, interactions: interactions.queries };
    const lines = exportChannel(queries, organizationId, id);
    const first = await lines.next();
    if (first.done === true) throw new CliError(`the organization has no channel ${id}`);
    async function* all(head: Buffer): AsyncGenerator<string> {
      yield `${head.toString()}\n`;
      for await (const line of lines) yield `${line.toString()}\n`;
    }
    await write(parts, options.output, Readable.from(all(first.value)));
  });
}

/** Creates the file atomically. */
async function write(parts: CliParts, output: string | undefined, lines: Readable): Promise<void> {
  if (output === undefined) {
    await pipeline(
      lines,
      new Writable({
        write(chunk, _encoding, done) {
          parts.print(String(chunk));
          done();
        },
      }),
    );
    return;
  }
  const next = `${output}.part`;
  try {
    await pipeline(lines, createWriteStream(next));
    await rename(next, output);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}

const PAGE = 200;
/** Reads as a service does: no reaction counts as its own. */
const READER = { userId: null };
const FILTER = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;

/**
 * The channel as JSON lines: the channel, then its interactions by sequence, in the form of the REST API. Yields
 * nothing if the organization has no such channel.
 */
async function* exportChannel(
  queries: { readonly channels: Channels; readonly interactions: InteractionQueries },
  organizationId: EntityId,
  channelId: EntityId,
): AsyncGenerator<Buffer> {
  const channel = await queries.channels.channel(organizationId, channelId);
  if (channel === null) return;
  yield channel.json;
  for (let after: string | null = null, more = true; more;) {
    const page = await queries.interactions.list(
      organizationId,
      channelId,
      FILTER,
      { size: PAGE, offset: 0, after },
      READER,
    );
    if (page === null) return;
    yield* page.items;
    after = page.last;
    more = page.hasNext && after !== null;
  }
}
