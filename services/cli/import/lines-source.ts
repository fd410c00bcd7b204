/** Files of JSON values as an import source. Checkpoints are byte offsets over all files. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';

import { parseChatgpt } from './chatgpt.format.ts';
import type { Conversation } from './conversation.ts';
import {
  BadInput,
  type ChannelDraft,
  type ImportFormat,
  type ImportJob,
  type ImportSource,
  type MessageDraft,
  parseSourceJson,
  type Place,
} from './import.model.ts';
import { parseMessages } from './messages.format.ts';
import { parseParley } from './parley.format.ts';
import { readValues, type SourceValue } from './source-values.ts';

type LinesFormat = Exclude<ImportFormat, 'slack'>;

/** Interactions of an exported channel in one job. */
const JOB_SIZE = 200;
const HEAD_BYTES = 64 * 1024;

interface ValuesFile {
  readonly name: string;
  readonly size: number;
  read(): Promise<AsyncIterable<Buffer>>;
}

/** @throws the errors of the file system */
export async function fileOf(path: string): Promise<ValuesFile> {
  const { size } = await stat(path);
  const read = () => Promise.resolve(createReadStream(path, { highWaterMark: 256 * 1024 }));
  return { name: basename(path), size, read };
}

/** @throws the errors of the file system */
export async function openLines(files: readonly ValuesFile[], format: LinesFormat): Promise<ImportSource> {
  const heads = await Promise.all(files.map(async (file) => `${file.size} ${await headOf(file)}`));
  const jobs = format === 'parley' ? exportedJobs : conversationJobs;
  const size = files.reduce((sum, file) => sum + file.size, 0);
  return {
    fingerprint: `${format} ${heads.join(' ')}`,
    jobs: (from) => jobs({ files, size, format }, from),
  };
}

interface LinesFile {
  readonly files: readonly ValuesFile[];
  readonly size: number;
  readonly format: LinesFormat;
}

interface SourceLine extends SourceValue {
  readonly place: Place;
}

/** Reads each file from its beginning, because the line number is not part of the checkpoint. */
async function* linesFrom({ files }: LinesFile, from: number): AsyncGenerator<SourceLine> {
  let before = 0;
  for (const file of files) {
    if (before + file.size > from) {
      for await (const value of readValues(await file.read())) {
        const end = before + value.end;
        const { line, item } = value;
        const place = { file: file.name, line, ...(item !== undefined && { item }) };
        if (end > from && value.text !== '') yield { ...value, end, place };
      }
    }
    before += file.size;
  }
}

function parserOf(format: Exclude<LinesFormat, 'parley'>): (text: string, place: Place) => Conversation {
  return format === 'chatgpt' ? parseChatgpt : (text, place) => parseMessages(format, text, place);
}

async function* conversationJobs(file: LinesFile, from: number): AsyncGenerator<ImportJob> {
  const { format } = file;
  if (format === 'parley') return;
  const parse = parserOf(format);
  for await (const line of linesFrom(file, from)) {
    const { place } = line;
    const parsed = attempt(line, (text) => parse(text, place));
    const common = { skipped: [], checkpoint: line.end, fraction: line.end / file.size };
    yield parsed.ok
      ? { ...common, ...parsed.value }
      : { ...common, channel: null, messages: [], bad: [{ ...place, reason: parsed.reason }] };
  }
}

/**
 * Jobs of exported channels. An import that resumes in the middle of a channel includes the channel in its next
 * job again, because creating it may be what failed.
 */
async function* exportedJobs(file: LinesFile, from: number): AsyncGenerator<ImportJob> {
  let channel: ChannelDraft | null = null;
  let messages: MessageDraft[] = [];
  let bad: (Place & { readonly reason: string })[] = [];
  let end = from;
  const nextJob = (): ImportJob => {
    const fraction = file.size === 0 ? 1 : end / file.size;
    const job = { channel, messages, bad, skipped: [], checkpoint: end, fraction };
    messages = [];
    bad = [];
    return job;
  };
  for await (const line of linesFrom(file, 0)) {
    const { place } = line;
    const parsed = attempt(line, (text) => parseParley(text, place));
    const done = line.end <= from;
    if (parsed.ok && parsed.value.kind === 'channel') {
      if (!done && channel !== null) yield nextJob();
      ({ channel } = parsed.value);
    }
    if (done) continue;
    if (!parsed.ok) bad.push({ ...place, reason: parsed.reason });
    else if (parsed.value.kind === 'interaction') {
      if (channel?.key === parsed.value.channelKey) messages.push(parsed.value.message);
      else bad.push({ ...place, reason: 'an interaction whose channel is not before it' });
    }
    end = line.end;
    if (messages.length + bad.length >= JOB_SIZE) yield nextJob();
  }
  yield nextJob();
}

type Attempt<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

function attempt<T>({ text, problem }: SourceValue, parse: (text: string) => T): Attempt<T> {
  if (text === null) return { ok: false, reason: problem ?? 'unreadable' };
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    if (error instanceof BadInput) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The format of a file, from the first value that identifies one; null if none of the first 100 does. */
export async function detectLines(file: ValuesFile): Promise<LinesFormat | null> {
  let count = 0;
  for await (const { text } of readValues(await file.read())) {
    const found = text === null ? null : formatOfLine(text);
    if (found !== null || ++count >= 100) return found;
  }
  return null;
}

function formatOfLine(text: string): LinesFormat | null {
  try {
    const value = parseSourceJson(text);
    if (typeof value !== 'object' || value === null) return null;
    if ('mapping' in value) return 'chatgpt';
    if ('conversations' in value) return 'sharegpt';
    if ('messages' in value) return 'openai';
    return 'channel_type' in value ? 'parley' : null;
  } catch {
    return null;
  }
}

/** Digest of the beginning of a file. */
async function headOf(file: ValuesFile): Promise<string> {
  const hash = createHash('sha256');
  let rest = HEAD_BYTES;
  for await (const chunk of await file.read()) {
    hash.update(chunk.subarray(0, rest));
    rest -= Math.min(rest, chunk.length);
    if (rest === 0) break;
  }
  return hash.digest('hex');
}
