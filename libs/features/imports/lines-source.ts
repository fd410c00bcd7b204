/** A file of JSON lines as a source. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';

import type { EntityId } from '#libs/kernel/ids.ts';

import { BadInput } from './import.model.ts';
import type { ChannelDraft, ImportFormat, ImportJob, ImportSource, MessageDraft, Place } from './import.model.ts';
import { readLines } from './line-reader.ts';
import type { SourceLine } from './line-reader.ts';
import { parseSourceJson } from './source-json.ts';
import { parseOpenai } from './openai.format.ts';
import { parseParley } from './parley.format.ts';
import { parseSharegpt } from './sharegpt.format.ts';

export type LinesFormat = Exclude<ImportFormat, 'slack'>;

/** Interactions of an exported channel that make a piece of work. */
const PIECE = 200;
const HEAD_BYTES = 64 * 1024;

/** @throws the errors of the file system */
export async function openLines(path: string, format: LinesFormat): Promise<ImportSource> {
  const { size, head } = await lookInto(path);
  const jobs = format === 'parley' ? exportedJobs : conversationJobs;
  return {
    fingerprint: `${format} ${size} ${head}`,
    jobs: (from) => jobs({ path, size, format }, from),
  };
}

interface LinesFile {
  readonly path: string;
  readonly size: number;
  readonly format: LinesFormat;
}

/** Marks are offsets: a line's number is found by counting, which takes a moment and no memory. */
async function* linesFrom({ path }: LinesFile, from: number): AsyncGenerator<SourceLine> {
  for await (const line of readLines(path, { offset: 0, number: 1 })) {
    if (line.end > from && line.text !== '') yield line;
  }
}

async function* conversationJobs(file: LinesFile, from: number): AsyncGenerator<ImportJob> {
  const parse = file.format === 'openai' ? parseOpenai : parseSharegpt;
  for await (const line of linesFrom(file, from)) {
    const place = { file: basename(file.path), line: line.number };
    const parsed = attempt(line, (text) => parse(text, place));
    const common = { skipped: [], mark: line.end, fraction: line.end / file.size };
    yield parsed.ok
      ? { ...common, ...parsed.value, bad: [] }
      : { ...common, channel: null, messages: [], bad: [{ ...place, reason: parsed.reason }] };
  }
}

/**
 * An exported channel comes in pieces. Going on in the middle of one, its first line is read again: it may
 * be the very thing that was not written.
 */
async function* exportedJobs(file: LinesFile, from: number): AsyncGenerator<ImportJob> {
  let channel: ChannelDraft | null = null;
  let messages: MessageDraft[] = [];
  let bad: (Place & { readonly reason: string })[] = [];
  let end = from;
  const piece = (): ImportJob => {
    const job = { channel, messages, bad, skipped: [], mark: end, fraction: file.size === 0 ? 1 : end / file.size };
    messages = [];
    bad = [];
    return job;
  };
  for await (const line of linesFrom(file, 0)) {
    const place = { file: basename(file.path), line: line.number };
    const parsed = attempt(line, (text) => parseParley(text, place));
    const done = line.end <= from;
    if (parsed.ok && parsed.value.kind === 'channel') {
      if (!done && channel !== null) yield piece();
      ({ channel } = parsed.value);
    }
    if (done) continue;
    if (!parsed.ok) bad.push({ ...place, reason: parsed.reason });
    else if (parsed.value.kind === 'interaction') {
      if (channel?.key === parsed.value.channelKey) messages.push(parsed.value.message);
      else bad.push({ ...place, reason: 'an interaction whose channel is not before it' });
    }
    end = line.end;
    if (messages.length + bad.length >= PIECE) yield piece();
  }
  yield piece();
}

type Attempt<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

function attempt<T>({ text, problem }: SourceLine, parse: (text: string) => T): Attempt<T> {
  if (text === null) return { ok: false, reason: problem ?? 'unreadable' };
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    if (error instanceof BadInput) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The format of a file by the first of its lines that tells; null if none does. */
export async function detectLines(path: string): Promise<LinesFormat | null> {
  for await (const { number, text } of readLines(path, { offset: 0, number: 1 })) {
    const found = text === null ? null : formatOfLine(text);
    if (found !== null || number >= 100) return found;
  }
  return null;
}

function formatOfLine(text: string): LinesFormat | null {
  try {
    const value = parseSourceJson(text);
    if (typeof value !== 'object' || value === null) return null;
    if ('conversations' in value) return 'sharegpt';
    if ('messages' in value) return 'openai';
    return 'channel_type' in value ? 'parley' : null;
  } catch {
    return null;
  }
}

async function lookInto(path: string): Promise<{ readonly size: number; readonly head: EntityId }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return { size, head: createHash('sha256').update(buffer.subarray(0, bytesRead)).digest('hex') };
  } finally {
    await file.close();
  }
}
