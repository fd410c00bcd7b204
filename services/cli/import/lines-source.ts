/** A file of JSON lines as an import source. Checkpoints are byte offsets. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';

import type { EntityId } from '#libs/kernel/ids.ts';

import { BadInput, parseSourceJson } from './import.model.ts';
import type { ChannelDraft, ImportFormat, ImportJob, ImportSource, MessageDraft, Place } from './import.model.ts';
import { parseOpenai } from './openai.format.ts';
import { parseParley } from './parley.format.ts';
import { parseSharegpt } from './sharegpt.format.ts';

export type LinesFormat = Exclude<ImportFormat, 'slack'>;

/** Interactions of an exported channel in one job. */
const JOB_SIZE = 200;
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

/** Reads from the beginning, because the line number is not part of the checkpoint. */
async function* linesFrom({ path }: LinesFile, from: number): AsyncGenerator<SourceLine> {
  for await (const line of readLines(path)) {
    if (line.end > from && line.text !== '') yield line;
  }
}

async function* conversationJobs(file: LinesFile, from: number): AsyncGenerator<ImportJob> {
  const parse = file.format === 'openai' ? parseOpenai : parseSharegpt;
  for await (const line of linesFrom(file, from)) {
    const place = { file: basename(file.path), line: line.number };
    const parsed = attempt(line, (text) => parse(text, place));
    const common = { skipped: [], checkpoint: line.end, fraction: line.end / file.size };
    yield parsed.ok
      ? { ...common, ...parsed.value, bad: [] }
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
    const place = { file: basename(file.path), line: line.number };
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

function attempt<T>({ text, problem }: SourceLine, parse: (text: string) => T): Attempt<T> {
  if (text === null) return { ok: false, reason: problem ?? 'unreadable' };
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    if (error instanceof BadInput) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The format of a file, from the first line that identifies one; null if none of the first 100 does. */
export async function detectLines(path: string): Promise<LinesFormat | null> {
  for await (const { number, text } of readLines(path)) {
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

interface SourceLine {
  /** From 1. */
  readonly number: number;
  /** Null for a line that is too long, or is not UTF-8; `problem` says which. */
  readonly text: string | null;
  readonly problem: string | null;
  /** Offset of the end of this line in the file, in bytes. */
  readonly end: number;
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Reads lines with bounded memory. */
async function* readLines(path: string): AsyncGenerator<SourceLine> {
  let parts: Buffer[] = [];
  let held = 0;
  let number = 1;
  let end = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    let rest: Buffer = chunk;
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      end += at + 1;
      yield lineOf([...parts, rest.subarray(0, at)], held + at, { number, end });
      number += 1;
      parts = [];
      held = 0;
      rest = rest.subarray(at + 1);
    }
    held += rest.length;
    end += rest.length;
    // A line that is too long is counted but not kept.
    if (held <= MAX_LINE_BYTES) parts.push(rest);
    else parts = [];
  }
  if (held > 0) yield lineOf(parts, held, { number, end });
}

function lineOf(
  parts: readonly Buffer[],
  length: number,
  place: { readonly number: number; readonly end: number },
): SourceLine {
  if (length > MAX_LINE_BYTES) {
    return { ...place, text: null, problem: `longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB` };
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    return { ...place, text: text.trim(), problem: null };
  } catch {
    return { ...place, text: null, problem: 'not UTF-8' };
  }
}
