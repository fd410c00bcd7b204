/** Slack's export as an import source: one job for each day of each channel, day by day. Checkpoints count jobs. */
import { createHash } from 'node:crypto';

import { BadInput, parseSourceJson } from './import.model.ts';
import type { ImportJob, ImportSource, MessageDraft, Place, Problem } from './import.model.ts';
import type { ExportFiles } from './export-files.ts';
import { parseSlackChannel, parseSlackMessage, parseSlackUsers } from './slack.format.ts';
import type { SlackChannel, SlackPeople } from './slack.format.ts';

const DAY = /^\d{4}-\d{2}-\d{2}\.json$/;

interface Day {
  readonly channel: SlackChannel;
  readonly name: string;
  readonly bytes: number;
}

/**
 * @param open opens the export: once to list it, and once for each call of `jobs`
 * @throws BadInput if it is not an export, or its list of channels cannot be read
 */
export async function openSlack(open: () => Promise<ExportFiles>): Promise<ImportSource> {
  const files = await open();
  try {
    return await sourceOf(files, open);
  } finally {
    files.close();
  }
}

async function sourceOf(files: ExportFiles, open: () => Promise<ExportFiles>): Promise<ImportSource> {
  const people = parseSlackUsers(await readJson(files, 'users.json', `${files.path}: users.json: `));
  const list = await readJson(files, 'channels.json', `${files.path}: channels.json: `);
  if (!Array.isArray(list)) throw new BadInput(`${files.path}: channels.json: not a list of channels`);
  const bad: Problem[] = [];
  const channels: SlackChannel[] = [];
  for (const [index, input] of list.entries()) {
    const place = { file: 'channels.json', line: index + 1 };
    await noting(bad, place, () => channels.push(parseSlackChannel(input, people, place)));
  }
  const days = (await Promise.all(channels.map((channel) => daysOf(files, channel)))).flat();
  // Day by day over all channels: jobs of different channels run concurrently.
  days.sort((one, other) => compare(one.name, other.name) || compare(one.channel.folder, other.channel.folder));
  const listing = days.map(({ channel, name, bytes }) => `${channel.folder}/${name} ${bytes}`).join('\n');
  const digest = createHash('sha256').update(listing).digest('hex');
  return { fingerprint: `slack ${digest}`, jobs: (from) => jobsOf({ open, days, people, channels, bad }, from) };
}

interface SlackExport {
  open(): Promise<ExportFiles>;
  readonly days: readonly Day[];
  readonly people: SlackPeople;
  readonly channels: readonly SlackChannel[];
  readonly bad: readonly Problem[];
}

/** Before the first day, creates all channels, including those without messages. */
async function* jobsOf({ open, days, people, channels, bad }: SlackExport, from: number): AsyncGenerator<ImportJob> {
  if (from === 0) {
    const empty = { messages: [], bad: [], skipped: [], checkpoint: 0, fraction: 0 };
    yield { ...empty, channel: null, bad };
    for (const { draft } of channels) yield { ...empty, channel: draft };
  }
  const all = days.reduce((sum, { bytes }) => sum + bytes, 0);
  let read = 0;
  const files = await open();
  try {
    for (const [index, day] of days.entries()) {
      read += day.bytes;
      if (index < from) continue;
      const content = await readDay(files, day, people);
      yield { channel: day.channel.draft, ...content, checkpoint: index + 1, fraction: all === 0 ? 1 : read / all };
    }
  } finally {
    files.close();
  }
}

async function readDay(files: ExportFiles, { channel, name }: Day, people: SlackPeople) {
  const file = `${channel.folder}/${name}`;
  const messages: MessageDraft[] = [];
  const bad: Problem[] = [];
  const skipped: Problem[] = [];
  await noting(bad, { file, line: null }, async () => {
    const list = await readJson(files, file);
    if (!Array.isArray(list)) throw new BadInput('not a list of messages');
    for (const [index, input] of list.entries()) {
      const place = { file, line: index + 1 };
      await noting(bad, place, () => {
        const parsed = parseSlackMessage(input, people, place);
        if (parsed.kind === 'message') messages.push(parsed.message);
        else skipped.push({ ...place, reason: parsed.reason });
      });
    }
  });
  return { messages, bad, skipped };
}

/** Runs `work`, and adds its `BadInput` to the problems. */
async function noting(bad: Problem[], place: Place, work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    bad.push({ ...place, reason: error.message });
  }
}

async function daysOf(files: ExportFiles, channel: SlackChannel): Promise<Day[]> {
  // The name comes from the export: it must not point outside of it.
  if (/[/\\]|^\.\.?$/.test(channel.folder)) return [];
  const found = await files.list(channel.folder);
  return found.filter(({ name }) => DAY.test(name)).map(({ name, bytes }) => ({ channel, name, bytes }));
}

/** @param prefix of the error messages */
async function readJson(files: ExportFiles, name: string, prefix = ''): Promise<unknown> {
  try {
    return parseSourceJson(await files.read(name));
  } catch (error) {
    throw error instanceof BadInput ? new BadInput(`${prefix}${error.message}`) : error;
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
