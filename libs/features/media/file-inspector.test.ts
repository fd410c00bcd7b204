import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { HOSTILE_FILES, SAMPLE_FILES, spinningPdf } from '#test/support/media-files.ts';
import { memoryPeakOf } from '#test/support/memory.ts';

import { FileInspector } from './file-inspector.ts';

const MIB = 1024 * 1024;
const { signal } = new AbortController();

let folder: string;
let inspector: FileInspector;
let count = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-inspector-'));
  inspector = new FileInspector();
});
afterAll(async () => {
  await inspector?.close();
  await rm(folder, { recursive: true, force: true });
});

/** @returns what was found, with the contents of the files that were written */
async function inspect(content: Uint8Array, { by = inspector, isTextWanted = false, group = 'an organization' } = {}) {
  const path = join(folder, String((count += 1)));
  const [previewPath, textPath] = [`${path}.preview`, `${path}.text`];
  await writeFile(path, content);
  const found = await by.inspect({ path, previewPath, textPath: isTextWanted ? textPath : null }, { group, signal });
  return {
    ...found,
    previewFile: found.preview && (await readFile(previewPath)),
    textFile: found.text && (await readFile(textPath, 'utf8')),
  };
}

/** The text of a preview, or the size of its image, which is the one that is stated. */
async function shown({ preview, previewFile }: Awaited<ReturnType<typeof inspect>>) {
  if (preview === null || previewFile === null) return null;
  if (preview.mimeType === 'text/plain') return previewFile.toString();
  const { format, width, height } = await sharp(previewFile).metadata();
  expect({ mimeType: `image/${format}`, width, height }).toEqual(preview);
  return [width, height];
}

const sample = (name: string) => SAMPLE_FILES.find((file) => file.name === name)!;
const failureOf = (inspected: Promise<unknown>): Promise<string> =>
  inspected.then(
    () => 'none',
    ({ message }: Error) => message,
  );

describe.each(SAMPLE_FILES)('$name', ({ make, expected }) => {
  it('is known by its content, measured as it is shown, and previewed', async () => {
    const { width = 0, height = 0, pages = null, durationMs = 0, preview = null, ...type } = expected;
    const found = await inspect(await make());
    expect(found).toMatchObject({ type, width, height, pages, text: null });
    // Formats that fill their last block are a little longer.
    expect(Math.abs((found.durationMs ?? 0) - durationMs)).toBeLessThan(200);
    expect(await shown(found)).toEqual(preview);
  });
});

describe('the text of a file', () => {
  it.each([
    ['book.pdf', 'text/markdown', /^## Page 1\n\nPage 1 of 200\n\n## Page 2\n[^]*Page 200 of 200$/],
    ['page.html', 'text/html', /^<!doctype html>.*München: 5 €\n$/],
    ['utf8.txt', 'text/plain', /^Grüße aus München: 5 €\n$/],
    ['utf16.txt', 'text/plain', /^Grüße aus München: 5 €\n$/],
    ['windows.txt', 'text/plain', /^Grüße aus München: 5 €\n$/],
  ])('is written in UTF-8 if it is wanted: %s', async (name, contentType, text) => {
    const found = await inspect(await sample(name).make(), { isTextWanted: true });
    expect(found.text).toEqual({ contentType, title: null, truncated: false });
    expect(found.textFile).toMatch(text);
  });

  it('ends at 5 MiB, in no character', async () => {
    const found = await inspect(Buffer.from('€'.repeat(2 * MIB)), { isTextWanted: true });
    expect(found.text?.truncated).toBe(true);
    expect(found.textFile).toBe('€'.repeat(Math.floor((5 * MIB) / 3)));
    expect(found.previewFile?.toString()).toBe('€'.repeat(Math.floor((16 * 1024) / 3)));
  });

  it('is not there for images, and cannot be read behind a password', async () => {
    expect((await inspect(await sample('photo.jpg').make(), { isTextWanted: true })).text).toBeNull();
    const encrypted = inspect(await sample('encrypted.pdf').make(), { isTextWanted: true });
    expect(await failureOf(encrypted)).toBe('the PDF is protected by a password');
  });
});

it('a file that meets a process which an earlier one has killed is inspected by the next process', async () => {
  const page = await sample('page.html').make();
  await inspect(page);
  for (const pid of inspector.pids) process.kill(pid, 'SIGKILL');
  expect(await inspect(page)).toMatchObject({ pages: null });
});

describe('a hostile file', () => {
  it.each(HOSTILE_FILES)('$name ends within the limits of its process', async ({ make, failure }) => {
    const ended = inspect(await make());
    let peakBytes = 0;
    const watch = setInterval(() => {
      peakBytes = Math.max(peakBytes, ...inspector.pids.map(memoryPeakOf));
    }, 5);
    try {
      expect(await failureOf(ended)).toMatch(failure ?? /^none$/);
    } finally {
      clearInterval(watch);
    }
    expect(peakBytes).toBeLessThan(300 * MIB);
    expect((await inspect(await sample('photo.jpg').make())).width).toBe(120);
  });

  it('that takes too much time fails, and those beside it do not', async () => {
    const by = new FileInspector({ timeoutMs: 2_000, tasksAtOnce: 4 });
    try {
      // These take no libraries, so a busy machine does not make them late as well.
      const files = ['archive.zip', 'unknown.bin', 'utf8.txt'].map((name) => sample(name).make());
      const [spinning, ...others] = await Promise.all([
        failureOf(inspect(spinningPdf(), { by })),
        ...files.map(async (file) => inspect(await file, { by })),
      ]);
      expect(spinning).toBe('processing it takes longer than 2 s');
      expect(others.map(({ type }) => type.format)).toEqual(['zip', 'bin', 'txt']);
    } finally {
      await by.close();
    }
  });

  it('that computes for ever ends without its worker, which may have been killed', async () => {
    const by = new FileInspector({ timeoutMs: 600_000, maxProcessorSeconds: 1 });
    try {
      expect(await failureOf(inspect(spinningPdf(), { by }))).toBe('processing it takes too much memory, or fails');
    } finally {
      await by.close();
    }
  });

  it('that is damaged or ends the process fails, and those beside it do not', async () => {
    const by = new FileInspector({ tasksAtOnce: 4 });
    try {
      const make = (name: string) => HOSTILE_FILES.find((file) => file.name === name)!.make();
      const damaged = ['a PDF of forms in forms', 'a JPEG that is cut off', 'a PDF that is none'].map(make);
      const fine = ['photo.jpg', 'turned.pdf', 'deep.png', 'turned.mp4', 'utf8.txt'].map((name) => sample(name).make());
      const failures = damaged.map(async (file) => failureOf(inspect(await file, { by })));
      const found = await Promise.all(fine.map(async (file) => inspect(await file, { by })));
      expect(found.map(({ type }) => type.format)).toEqual(['jpg', 'pdf', 'png', 'mp4', 'txt']);
      const reasons = [/^processing it takes too much memory/, /^the file is damaged$/, /^the file is damaged$/];
      for (const [index, reason] of reasons.entries()) expect(await failures[index]).toMatch(reason);
    } finally {
      await by.close();
    }
  });
});

it('files that are not wanted any longer do not disturb others', async () => {
  const by = new FileInspector({ tasksAtOnce: 4 });
  try {
    const cancelling = new AbortController();
    const path = join(folder, 'cancelled');
    await writeFile(path, spinningPdf());
    const request = { path, previewPath: `${path}.preview`, textPath: null };
    const cancelled = failureOf(by.inspect(request, { group: 'an organization', signal: cancelling.signal }));
    const other = inspect(await sample('book.pdf').make(), { by });
    cancelling.abort(new Error('enough'));
    expect(await cancelled).toBe('enough');
    expect((await other).pages).toBe(200);
  } finally {
    await by.close();
  }
});

it('files of one organization, whatever they do, hold the processes of no other', async () => {
  const by = new FileInspector({ timeoutMs: 600_000, tasksAtOnce: 1 });
  try {
    // They compute until they are cancelled.
    const spinning = Array.from({ length: 3 }, () => failureOf(inspect(spinningPdf(), { by, group: 'a' })));
    const text = await sample('utf8.txt').make();
    expect((await inspect(text, { by, group: 'b' })).type.format).toBe('txt');
    expect((await inspect(text, { by, group: 'c' })).type.format).toBe('txt');
    await by.close();
    expect(await Promise.all(spinning)).toEqual(Array.from({ length: 3 }, () => 'the process stops'));
  } finally {
    await by.close();
  }
});
