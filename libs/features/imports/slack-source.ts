/** A folder with Slack's export as a source: a piece for each day of each channel, day by day. */
import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { BadInput } from './import.model.ts';
import type { ImportJob, ImportSource, MessageDraft, Problem } from './import.model.ts';
import { parseSlackChannel, parseSlackMessage, parseSlackUsers } from './slack.format.ts';
import type { SlackChannel, SlackPeople } from './slack.format.ts';

/** A day of one channel is read as a whole; Slack's are far below this. */
const MAX_DAY_BYTES = 256 * 1024 * 1024;
const DAY = /^\d{4}-\d{2}-\d{2}\.json$/;

interface Day {
  readonly channel: SlackChannel;
  readonly name: string;
  readonly bytes: number;
}

/** @throws BadInput if the folder is no export, or its list of channels cannot be read */
export async function openSlack(path: string): Promise<ImportSource> {
  const people = parseSlackUsers(await readJson(join(path, 'users.json'), 'users.json'));
  const list = await readJson(join(path, 'channels.json'), 'channels.json');
  if (!Array.isArray(list)) throw new BadInput('channels.json: not a list of channels');
  const bad: Problem[] = [];
  const channels: SlackChannel[] = [];
  for (const [index, input] of list.entries()) {
    const place = { file: 'channels.json', line: index + 1 };
    try {
      channels.push(parseSlackChannel(input, people, place));
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      bad.push({ ...place, reason: error.message });
    }
  }
  const days = (await Promise.all(channels.map((channel) => daysOf(path, channel)))).flat();
  // Day by day over all channels: so many channels are written at a time, and each in its order.
  days.sort((one, other) => compare(one.name, other.name) || compare(one.channel.folder, other.channel.folder));
  const listing = days.map(({ channel, name, bytes }) => `${channel.folder}/${name} ${bytes}`).join('\n');
  const digest = createHash('sha256').update(listing).digest('hex');
  return { fingerprint: `slack ${digest}`, jobs: (from) => jobsOf({ path, days, people, channels, bad }, from) };
}

interface SlackExport {
  readonly path: string;
  readonly days: readonly Day[];
  readonly people: SlackPeople;
  readonly channels: readonly SlackChannel[];
  readonly bad: readonly Problem[];
}

/** Marks count days; before the first of them stand the channels themselves, even those without a message. */
async function* jobsOf({ path, days, people, channels, bad }: SlackExport, from: number): AsyncGenerator<ImportJob> {
  if (from === 0) {
    const empty = { messages: [], bad: [], skipped: [], mark: 0, fraction: 0 };
    yield { ...empty, channel: null, bad };
    for (const { draft } of channels) yield { ...empty, channel: draft };
  }
  const all = days.reduce((sum, { bytes }) => sum + bytes, 0);
  let read = 0;
  for (const [index, day] of days.entries()) {
    read += day.bytes;
    if (index < from) continue;
    const content = await readDay(path, day, people);
    yield { channel: day.channel.draft, ...content, mark: index + 1, fraction: all === 0 ? 1 : read / all };
  }
}

async function readDay(path: string, { channel, name, bytes }: Day, people: SlackPeople) {
  const file = `${channel.folder}/${name}`;
  const messages: MessageDraft[] = [];
  const bad: Problem[] = [];
  const skipped: Problem[] = [];
  try {
    if (bytes > MAX_DAY_BYTES) throw new BadInput(`larger than ${MAX_DAY_BYTES / 1024 / 1024} MiB`);
    const list = await readJson(join(path, file), null);
    if (!Array.isArray(list)) throw new BadInput('not a list of messages');
    for (const [index, input] of list.entries()) {
      const place = { file, line: index + 1 };
      try {
        const parsed = parseSlackMessage(input, people, place);
        if (parsed.kind === 'message') messages.push(parsed.message);
        else skipped.push({ ...place, reason: parsed.reason });
      } catch (error) {
        if (!(error instanceof BadInput)) throw error;
        bad.push({ ...place, reason: error.message });
      }
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    bad.push({ file, line: null, reason: error.message });
  }
  return { messages, bad, skipped };
}

async function daysOf(path: string, channel: SlackChannel): Promise<Day[]> {
  // The name comes from a file: it must not lead out of the export.
  if (/[/\\]|^\.\.?$/.test(channel.folder)) return [];
  const names = await readdir(join(path, channel.folder)).catch(() => []);
  return Promise.all(
    names
      .filter((name) => DAY.test(name))
      .map(async (name) => ({ channel, name, bytes: (await stat(join(path, channel.folder, name))).size })),
  );
}

/** @param name to say in errors */
async function readJson(path: string, name: string | null): Promise<unknown> {
  const at = name === null ? '' : `${name}: `;
  let bytes: string;
  try {
    bytes = await readFile(path, 'utf8');
  } catch {
    throw new BadInput(`${at}cannot be read`);
  }
  try {
    return JSON.parse(bytes);
  } catch {
    throw new BadInput(`${at}not JSON`);
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
