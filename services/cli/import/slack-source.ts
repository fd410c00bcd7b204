/** Slack's export as an import source: one job for each day of each channel, day by day. Checkpoints count jobs. */
import { createHash } from 'node:crypto';

import {
  BadInput,
  type ImportJob,
  type ImportSource,
  type MessageDraft,
  parseSourceJson,
  type Place,
  type Problem,
  timesOf,
} from './import.model.ts';
import type { ExportFiles } from './export-files.ts';
import {
  parseSlackChannel,
  parseSlackMessage,
  parseSlackUsers,
  SLACK_LISTS,
  type SlackChannel,
  type SlackPeople,
} from './slack.format.ts';

const DAY = /^\d{4}-\d{2}-\d{2}\.json$/;

interface Day {
  readonly channel: SlackChannel;
  readonly folder: string;
  readonly name: string;
  readonly bytes: number;
}

/**
 * @param open opens the export: once to list it, and once for each call of `jobs`
 * @throws BadInput if it is not an export, or a list of its users or channels cannot be read
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
  const there = new Set((await files.list('')).map(({ name }) => name));
  const usersOf = async (name: string): Promise<SlackPeople> =>
    parseSlackUsers(await readJson(files, name, `${files.path}: ${name}: `));
  const people = new Map(await usersOf('users.json'));
  // The people of all workspaces of an organization.
  if (there.has('org_users.json')) for (const one of await usersOf('org_users.json')) people.set(...one);
  const bad: Problem[] = [];
  const channels: SlackChannel[] = [];
  for (const [name, kind] of Object.entries(SLACK_LISTS)) {
    if (!there.has(name)) continue;
    const list = await readJson(files, name, `${files.path}: ${name}: `);
    if (!Array.isArray(list)) throw new BadInput(`${files.path}: ${name}: not a list of channels`);
    for (const [index, input] of list.entries()) {
      const place = { file: name, line: index + 1 };
      await noting(bad, place, () => {
        const parsed = parseSlackChannel(input, kind, people, place);
        channels.push(parsed);
        if (parsed.lost !== null) bad.push({ ...place, reason: parsed.lost.reason });
      });
    }
  }
  const days = await daysOf(files, channels, bad);
  // Day by day over all channels: jobs of different channels run concurrently.
  days.sort((one, other) => compare(one.name, other.name) || compare(one.folder, other.folder));
  const listing = days.map(({ folder, name, bytes }) => `${folder}/${name} ${bytes}`).join('\n');
  const digest = createHash('sha256').update(listing).digest('hex');
  return { fingerprint: `slack ${digest}`, jobs: (from) => jobsOf({ open, days, people, channels, bad }, from) };
}

/** The day files of the channels. Reports those that no channel claims. */
async function daysOf(files: ExportFiles, channels: readonly SlackChannel[], bad: Problem[]): Promise<Day[]> {
  const unclaimed = new Set(await files.folders());
  const days: Day[] = [];
  for (const channel of channels) {
    const folder = channel.folders.find((name) => unclaimed.delete(name));
    if (folder !== undefined) days.push(...(await filesOf(files, folder)).map((day) => ({ ...day, channel, folder })));
  }
  for (const folder of unclaimed) {
    for (const { name } of await filesOf(files, folder)) {
      bad.push({ file: `${folder}/${name}`, line: null, reason: 'no list of the export has a channel of this folder' });
    }
  }
  return days;
}

async function filesOf(files: ExportFiles, folder: string) {
  return (await files.list(folder)).filter(({ name }) => DAY.test(name));
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
    for (const { draft, lost } of channels) {
      yield { ...empty, channel: draft, ...(lost !== null && { leftOut: timesOf(lost) }) };
    }
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

async function readDay(files: ExportFiles, { folder, name }: Day, people: SlackPeople) {
  const file = `${folder}/${name}`;
  const messages: MessageDraft[] = [];
  const bad: Problem[] = [];
  const skipped: Problem[] = [];
  const leftOut: string[] = [];
  await noting(bad, { file, line: null }, async () => {
    const list = await readJson(files, file);
    if (!Array.isArray(list)) throw new BadInput('not a list of messages');
    for (const [index, input] of list.entries()) {
      const place = { file, line: index + 1 };
      await noting(bad, place, () => {
        const parsed = parseSlackMessage(input, people, place);
        if (parsed.kind === 'message') {
          messages.push(parsed.message);
          leftOut.push(...parsed.leftOut);
          if (parsed.lost !== null) bad.push({ ...place, reason: parsed.lost.reason });
        } else skipped.push({ ...place, reason: parsed.reason });
      });
    }
  });
  return { messages, bad, skipped, leftOut };
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
