/** Slack's export as a .zip: valid, damaged and malicious archives. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { ImportJob } from '#services/cli/import/import.model.ts';
import { openSource } from '#services/cli/import/open-source.ts';
import { type ZipEntry, zipOf } from '#test/support/zip.ts';

const SAMPLE = join(import.meta.dirname, '../../../../docs/samples/support-team');

let work: string;
let sample: readonly ZipEntry[];
let archives = 0;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'parley-test-zip-'));
  const names = (await readdir(SAMPLE, { recursive: true })).filter((name) => name.endsWith('.json'));
  sample = await Promise.all(names.map(async (name) => ({ name, content: await readFile(join(SAMPLE, name)) })));
});
afterAll(() => rm(work, { recursive: true, force: true }));

async function archive(content: Buffer): Promise<string> {
  const path = join(work, `export-${++archives}.zip`);
  await writeFile(path, content);
  return path;
}

async function jobsOf(path: string, from = 0): Promise<unknown[]> {
  const { format, source } = await openSource(path, null);
  expect(format).toBe('slack');
  return Array.fromAsync(source.jobs(from));
}

const channel = { id: 'C1', name: 'lab', members: [] };
const message = { type: 'message', ts: '1772445600.000100', user: 'U1', text: 'hello' };
const small: readonly ZipEntry[] = [
  { name: 'users.json', content: JSON.stringify([{ id: 'U1', name: 'ada' }]) },
  { name: 'channels.json', content: JSON.stringify([channel]) },
  { name: 'lab/2026-03-02.json', content: JSON.stringify([message]) },
];

describe("a .zip with Slack's export", () => {
  it('is read like the unpacked folder, from any position on', async () => {
    const path = await archive(zipOf(sample));
    const folder = await jobsOf(SAMPLE);
    expect(folder.length).toBeGreaterThan(20);
    expect(await jobsOf(path)).toEqual(folder);
    expect(await jobsOf(path, 7)).toEqual(await jobsOf(SAMPLE, 7));
    expect((await openSource(path, 'slack')).source.fingerprint).toBe(
      (await openSource(SAMPLE, null)).source.fingerprint,
    );
  });

  it('may hold all files in one folder, beside files that other programs leave there', async () => {
    const packed = sample.map((entry) => ({ ...entry, name: `My export/${entry.name}` }));
    const junk = { name: '__MACOSX/channels.json', content: 'junk' };
    expect(await jobsOf(await archive(zipOf([junk, ...packed])))).toEqual(await jobsOf(SAMPLE));
  });

  it('may hold private channels and direct messages, with or without public channels', async () => {
    const days = (folder: string, text: string) => ({
      name: `${folder}/2026-03-02.json`,
      content: JSON.stringify([{ ...message, text }]),
    });
    const entries: ZipEntry[] = [
      { name: 'users.json', content: JSON.stringify([{ id: 'U1', name: 'ada' }]) },
      { name: 'groups.json', content: JSON.stringify([{ id: 'G1', name: 'secret', members: ['U1'] }]) },
      { name: 'mpims.json', content: JSON.stringify([{ id: 'G2', name: 'mpdm-a--b-1', members: ['U1', 'U2'] }]) },
      { name: 'dms.json', content: JSON.stringify([{ id: 'D1', members: ['U1', 'U2'] }]) },
      days('secret', 'one'),
      days('mpdm-a--b-1', 'two'),
      days('D1', 'three'),
      days('gone', 'four'),
      { name: 'gone/canvas.json', content: '{}' },
    ];
    const jobs = (await jobsOf(await archive(zipOf(entries)))) as ImportJob[];
    const kinds = jobs
      .filter(({ messages }) => messages.length > 0)
      .map(({ channel, messages }) => [
        channel?.body.name,
        channel?.body.meta_data?.['source_kind'],
        messages.map(({ body }) => body.content),
      ]);
    expect(kinds).toEqual([
      ['ada, U2', 'direct_message', [[{ type: 'text', text: 'three' }]]],
      ['mpdm-a--b-1', 'group_message', [[{ type: 'text', text: 'two' }]]],
      ['secret', 'private_channel', [[{ type: 'text', text: 'one' }]]],
    ]);
    expect(jobs.flatMap(({ bad }) => bad)).toEqual([
      { file: 'gone/2026-03-02.json', line: null, reason: 'no list of the export has a channel of this folder' },
    ]);
  });

  it('may hold names without the flag that says UTF-8, in UTF-8 or in cp437', async () => {
    const named = (name: string, raw: Buffer): ZipEntry[] => [
      { name: 'users.json', content: '[]' },
      { name: 'channels.json', content: JSON.stringify([{ id: 'C1', name }]) },
      { name: raw, content: JSON.stringify([message]) },
    ];
    const cp437 = Buffer.from('b\x81ro/2026-03-02.json', 'latin1');
    for (const entries of [
      named('büro', Buffer.from('büro/2026-03-02.json')),
      named('büro', cp437),
      named('日本', Buffer.from('日本/2026-03-02.json')),
    ]) {
      const jobs = (await jobsOf(await archive(zipOf(entries)))) as ImportJob[];
      expect(jobs.flatMap(({ bad }) => bad)).toEqual([]);
      expect(jobs.flatMap(({ messages }) => messages)).toHaveLength(1);
    }
  });

  it('is recognised without its ending, and is refused in a sentence where it cannot be unpacked', async () => {
    const bytes = zipOf(small);
    const saved = async (name: string, content: Buffer | string): Promise<string> => {
      const path = join(work, name);
      await writeFile(path, content);
      return path;
    };
    expect(await jobsOf(await saved('no-ending', bytes))).toHaveLength(3);
    for (const [path, reason] of [
      [
        await archive(zipOf(small.map((one) => ({ ...one, encrypted: true })))),
        /users\.json: is protected by a password/,
      ],
      [await archive(bytes.subarray(0, bytes.length - 40)), /cannot be read as a \.zip/],
      [await saved('html.zip', '<html>not found</html>'), /cannot be read as a \.zip/],
      [await saved('talks.jsonl.gz', gzipSync('{}').subarray(0, 12)), /is compressed with gzip: unpack it first/],
      [join(work, 'nowhere.zip'), /cannot be read: there is no such file or folder/],
      [join(SAMPLE, 'users.json/below-a-file'), /cannot be read: a part of the path is not a folder/],
    ] as const) {
      await expect(openSource(path, null)).rejects.toThrow(reason);
    }
  });

  it('may spell its names with ./ and doubled slashes', async () => {
    const packed = sample.map((entry) => ({ ...entry, name: `./exp//${entry.name}` }));
    expect(await jobsOf(await archive(zipOf(packed)))).toEqual(await jobsOf(SAMPLE));
  });

  it('may hold days that cannot be unpacked, which are named while the others are read', async () => {
    const bomb = { name: 'lab/2026-03-03.json', content: Buffer.alloc(20_000_000, ' '), saysBytes: 1_000 };
    const huge = { name: 'lab/2026-03-04.json', content: '[]', saysBytes: 300 * 1024 * 1024 };
    const deep = { name: 'lab/2026-03-05.json', content: '['.repeat(10_000_000) };
    // Incompressible data: the archive as a whole unpacks to less than 200 times its size.
    const noise = { name: 'noise', content: randomBytes(2_000_000) };
    const jobs = await jobsOf(await archive(zipOf([...small, bomb, huge, deep, noise])));
    expect(jobs.slice(2)).toMatchObject([
      { messages: [{ body: { content: [{ text: 'hello' }] } }], bad: [] },
      {
        messages: [],
        bad: [{ file: bomb.name, reason: expect.stringMatching(/^cannot be unpacked: too many bytes/) }],
      },
      { messages: [], bad: [{ file: huge.name, reason: 'larger than 256 MiB' }] },
      { messages: [], bad: [{ file: deep.name, reason: 'nested deeper than 100 levels' }] },
    ]);
  });

  const many = Array.from({ length: 40 }, (_, index) => ({ name: `x/${index}`, content: '', saysBytes: 2 ** 31 }));
  it.each<[what: string, content: Buffer, reason: RegExp]>([
    ['is no archive', Buffer.from('PK, not'), /cannot be read as a \.zip/],
    ['is truncated', zipOf(small).subarray(0, 300), /cannot be read as a \.zip/],
    ['holds another kind of file', zipOf([{ name: 'letter.txt', content: 'dear' }]), /no channels\.json or/],
    [
      'has a path outside of it',
      zipOf([...small, { name: '../../etc/x', content: '' }]),
      /is damaged: invalid relative path/,
    ],
    ['has an absolute path', zipOf([...small, { name: '/etc/x', content: '' }]), /is damaged: absolute path/],
    ['would fill any disk', zipOf([...small, ...many]), /unpacks to more than an export can hold/],
    [
      'unpacks to many times its size',
      zipOf([...small, { name: 'lab/2026-03-03.json', content: '['.repeat(20_000_000) }]),
      /unpacks to more than 200 times its size/,
    ],
    [
      'has two entries of one name',
      zipOf([...small, { name: 'lab/2026-03-02.json', content: '[]' }]),
      /has two entries named lab\/2026-03-02\.json/,
    ],
    ...['./lab/2026-03-02.json', 'lab//2026-03-02.json', 'lab/./2026-03-02.json'].map<[string, Buffer, RegExp]>(
      (name) => [
        `has one file twice, the second time as ${name}`,
        zipOf([...small, { name, content: '[]' }]),
        /has two entries named lab\/2026-03-02\.json/,
      ],
    ),
    [
      'has its users twice, spelled in two ways',
      zipOf([{ name: './users.json', content: '[]' }, ...small]),
      /has two entries named users\.json/,
    ],
    [
      'holds an export inside of another',
      zipOf([...small.map((entry) => ({ ...entry, name: `exp/${entry.name}` })), ...small]),
      /holds more than one export: channels\.json, exp\/channels\.json/,
    ],
    [
      'holds two exports side by side',
      zipOf(['a', 'b'].flatMap((folder) => small.map((entry) => ({ ...entry, name: `${folder}/${entry.name}` })))),
      /holds more than one export: a\/channels\.json, b\/channels\.json/,
    ],
    ['lacks its users', zipOf(small.slice(1)), /export-\d+\.zip: users\.json: is not in the archive$/],
    [
      'has a list of the wrong type',
      zipOf([...small.slice(0, 1), { name: 'channels.json', content: '{' }]),
      /export-\d+\.zip: channels\.json: not JSON/,
    ],
  ])('is refused when it %s', async (_, content, reason) => {
    await expect(openSource(await archive(content), null)).rejects.toThrow(reason);
  });
});

describe("a folder that is not Slack's export", () => {
  it('is refused with its path and the missing file', async () => {
    const folder = join(work, 'empty');
    await mkdir(folder);
    const refusal = () => openSource(folder, null).catch((error: Error) => error.message);
    expect(await refusal()).toBe(
      `${folder} holds no export of Slack or ChatGPT: there is no channels.json or conversations.json in it`,
    );
    await writeFile(join(folder, 'channels.json'), '[]');
    expect(await refusal()).toBe(`${folder}: users.json: cannot be read: there is no such file or folder`);
  });
});

describe('a source that is not a regular file', () => {
  const pipe = (path: string): Promise<unknown> => promisify(execFile)('mkfifo', [path]);

  it.each([null, 'slack', 'openai'] as const)('is refused without being read (format %s)', async (format) => {
    const path = join(work, `pipe-${format}.zip`);
    await pipe(path);
    for (const source of [path, '/dev/zero']) {
      await expect(openSource(source, format)).rejects.toThrow(/is neither a regular file nor a folder/);
    }
  });

  it('is named by its path in the folder of an export', async () => {
    const folder = join(work, 'with-pipes');
    await mkdir(join(folder, 'lab'), { recursive: true });
    for (const { name, content } of small) await writeFile(join(folder, String(name)), content);
    await pipe(join(folder, 'lab/2026-03-03.json'));
    await symlink('/dev/zero', join(folder, 'lab/2026-03-04.json'));
    await symlink('missing', join(folder, 'lab/2026-03-05.json'));
    expect((await jobsOf(folder)).slice(2)).toMatchObject([
      { messages: [{ body: { content: [{ text: 'hello' }] } }], bad: [] },
      { messages: [], bad: [{ file: 'lab/2026-03-03.json', reason: 'not a regular file' }] },
      { messages: [], bad: [{ file: 'lab/2026-03-04.json', reason: 'not a regular file' }] },
      {
        messages: [],
        bad: [{ file: 'lab/2026-03-05.json', reason: 'cannot be read: there is no such file or folder' }],
      },
    ]);
  });
});
