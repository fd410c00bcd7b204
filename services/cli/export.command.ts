import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { Command } from 'commander';

import { exportChannel } from '#libs/features/imports/index.ts';

import { withSession } from './command-context.ts';
import type { CliParts } from './command-context.ts';
import { CliError } from './errors.ts';
import { ORGANIZATION_OPTION, organizationOf } from './organization-option.ts';
import type { OrganizationOptions } from './organization-option.ts';

interface ExportOptions extends OrganizationOptions {
  readonly output?: string;
}

export function exportCommand(parts: CliParts): Command {
  return new Command('export')
    .description('Give a channel back as JSON lines: the channel, then its interactions by sequence')
    .argument('<channel id>')
    .option('--output <file>', 'without it, standard output')
    .option(...ORGANIZATION_OPTION)
    .action((id: string, options: ExportOptions) => run(parts, id, options));
}

async function run(parts: CliParts, id: string, options: ExportOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const { channels, interactions } = session.features;
    const queries = { channels: channels.queries, interactions: interactions.queries };
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

/** A file appears whole, or not at all. */
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
