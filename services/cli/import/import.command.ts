import { resolve } from 'node:path';

import { Command, InvalidArgumentError, Option } from 'commander';

import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';

import {
  type CliParts,
  interruptible,
  ORGANIZATION_OPTION,
  type OrganizationOptions,
  printOne,
  withSession,
} from '../command-context.ts';
import { CliError } from '../errors.ts';
import { progressBar, rateSince } from '../output.ts';
import { organizationOf, type Session } from '../session.ts';
import { BadInput, FORMATS, FORMATS_READ, type ImportFormat, type ImportSource, type Problem } from './import.model.ts';
import { ImportTarget } from './import-target.ts';
import { StoreRetry } from './store-retry.ts';
import { openSource } from './open-source.ts';
import { ProgressFile } from './progress-file.ts';
import { NOTHING_YET, runImport, type ImportProgress } from './run-import.ts';

interface ImportOptions extends OrganizationOptions {
  readonly format?: ImportFormat;
  readonly wait: number;
}

export function importCommand(parts: CliParts): Command {
  return new Command('import')
    .description(
      "Import conversations: Slack's export (its .zip, or the folder), ChatGPT's, or a file of JSON (ShareGPT, OpenAI, Anthropic, AI SDK, parley export). Interrupted and run again, it resumes",
    )
    .argument('<path>')
    .addOption(new Option('-f, --format <format>', 'default: detected').choices([...FORMATS]))
    .addOption(
      new Option('--wait <seconds>', 'how long to wait for a store that is unavailable').argParser(seconds).default(60),
    )
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((path: string, options: ImportOptions) => run(parts, path, options));
}

function seconds(value: string): number {
  const number = Number(value);
  if (value.trim() === '' || !(number >= 0 && number <= 86_400)) throw new InvalidArgumentError('0 to 86400');
  return number;
}

async function run(parts: CliParts, path: string, options: ImportOptions): Promise<void> {
  const { format, source } = await openSource(path, options.format ?? null).catch((error: unknown) => {
    throw error instanceof BadInput ? new CliError(error.message) : error;
  });
  await interruptible(parts, (signal) =>
    withSession(parts, async (session) => {
      const organizationId = await organizationOf(session, options);
      const startedAt = performance.now();
      const { progress, resumed, problems, reasons, leftOut } = await work(parts, session, {
        path,
        source,
        organizationId,
        waitMs: options.wait * 1_000,
        signal,
      });
      const seconds = (performance.now() - startedAt) / 1_000;
      const { counts } = progress;
      printOne(parts, options, {
        format,
        ...counts,
        resumed,
        seconds: Number(seconds.toFixed(3)),
        ...(options.json === true
          ? { problems, skipped_because: reasons, left_out: leftOut }
          : { ...named('skipped_because', reasons), ...named('left_out', leftOut) }),
      });
      if (signal.aborted) throw new CliError('interrupted; run the same command to resume');
      if (counts.imported + counts.already + counts.channels === 0)
        throw new CliError(`nothing could be imported; ${FORMATS_READ}`);
      if (counts.bad > 0) {
        throw new CliError(
          `${counts.bad} bad ${counts.bad === 1 ? 'line was' : 'lines were'} left out, in whole or in part; the rest was imported`,
        );
      }
    }),
  );
}

/** A member of the summary for people, if there is something to say. */
function named(name: string, counts: Readonly<Record<string, number>>): Record<string, string> {
  const said = Object.entries(counts).map(([what, count]) => `${what} (${count})`);
  return said.length === 0 ? {} : { [name]: said.join(', ') };
}

interface Work {
  readonly path: string;
  readonly source: ImportSource;
  readonly organizationId: EntityId;
  /** How long a store may be unavailable. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Problems in the JSON summary; all of them are written to standard error. */
const MAX_PROBLEMS = 1_000;

async function work(parts: CliParts, session: Session, { path, source, organizationId, waitMs, signal }: Work) {
  const { dataDir, eventstoreUrl = '' } = parseConfig(parts.environment);
  const file = new ProgressFile(dataDir, [resolve(path), organizationId, eventstoreUrl], source.fingerprint);
  const from = await file.read();
  const bar = progressOf(parts);
  const problems: Problem[] = [];
  const reasons: Record<string, number> = {};
  const leftOut: Record<string, number> = {};
  const retry = new StoreRetry({
    waitMs,
    signal,
    onWaiting: (reason) => bar.line(`${reason}; retrying for up to ${waitMs / 1_000} seconds`),
    onBack: () => bar.line('the store is back; the import continues'),
  });
  try {
    const progress = await runImport(source, new ImportTarget({ ...session.features, organizationId }, retry), {
      from: from ?? { checkpoint: 0, counts: NOTHING_YET },
      signal,
      observer: {
        bad(problem) {
          if (problems.length < MAX_PROBLEMS) problems.push(problem);
          bar.line(`${placeOf(problem)}: ${problem.reason}`);
        },
        skipped({ reason }) {
          reasons[reason] = (reasons[reason] ?? 0) + 1;
        },
        leftOut(name) {
          leftOut[name] = (leftOut[name] ?? 0) + 1;
        },
        advanced(now, fraction) {
          bar.update(now, fraction);
          file.note(now);
        },
      },
    });
    await file.flush();
    if (!signal.aborted) await file.remove();
    return { progress, resumed: from !== null, problems, reasons, leftOut };
  } catch (error) {
    if (error instanceof Fault) throw new CliError(`${error.message}; run the same command to resume`);
    throw error;
  } finally {
    bar.stop();
    await file.flush();
  }
}

function placeOf({ file, line }: Problem): string {
  return line === null ? file : `${file}:${line}`;
}

const FORMAT = 'import  {bar}  {percentage}%  {messages} messages  {rate}/s  {bad} bad';

/** A bar with the rate of this run, and lines above it; without a terminal, only the lines. */
function progressOf({ terminal, tell }: CliParts) {
  const bar = progressBar(terminal, FORMAT, { messages: 0, rate: 0, bad: 0 });
  const startedAt = performance.now();
  let before: number | null = null;
  return {
    update({ counts }: ImportProgress, fraction: number): void {
      const messages = counts.imported + counts.already;
      before ??= messages;
      bar.update(fraction, { messages, rate: rateSince(startedAt, messages - before), bad: counts.bad });
    },
    line(text: string): void {
      terminal?.write('\r\u{1b}[K');
      tell(text);
    },
    stop: () => bar.stop(),
  };
}
