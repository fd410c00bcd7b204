/** `parley import` and `parley export` on real stores; as processes where they are killed, or their output fails. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type DataFolder, openDataFolder } from '#infra/data-folder/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { type CommandRun, PARLEY_COMMAND, runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { recordTopic } from '#test/support/realtime/channel-life.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';
import { zipOf } from '#test/support/zip.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const SLACK = join(ROOT, 'docs/samples/support-team');
const ASSISTANT = join(ROOT, 'docs/samples/assistant.jsonl');

interface Interaction {
  readonly id: string;
  readonly sequence: number;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly interaction_id: string;
  readonly content_role: string;
  readonly participant: { readonly type: string };
  readonly content: readonly Record<string, unknown>[];
  readonly metadata: Record<string, unknown>;
  readonly invocation_config: { readonly mentions: readonly { offset: number; length: number }[] } | null;
}

let api: TestApi;
let folder: DataFolder;
let dataDir: string;
let work: string;
let organizations = 0;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-import-'));
  work = await mkdtemp(join(tmpdir(), 'parley-test-source-'));
  api = await startTestApi();
  folder = await openDataFolder(dataDir);
  await folder.publish({ eventstoreUrl: api.stores.eventStore.url, redisUrl: api.stores.redis.url });
});
afterAll(async () => {
  await folder.release();
  await api.stop();
  await Promise.all([dataDir, work].map((path) => rm(path, { recursive: true, force: true })));
});

const env = () => ({ DATA_DIR: dataDir });

const parley = (...args: string[]): Promise<CommandRun> => runParley(env(), ...args);

/** A new organization for each test, so that no test sees another's channels. */
async function organization(): Promise<{ readonly id: string; readonly key: string }> {
  organizations += 1;
  const create = async (url: string, body: object) =>
    (await api.call({ method: 'POST', url, key: api.rootKey, body })).json;
  const { id } = await create('/api/v1/organizations', { name: `Import ${organizations}` });
  const principal = { type: 'service', id: 'test' };
  const key = { name: 'test', scopes: ['read', 'write'], principal, organization_id: id };
  return { id, key: (await create('/api/v1/keys', key)).key };
}

async function pages<T>(key: string, url: string): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ''; ;) {
    const answer = await api.call({ method: 'GET', url: `${url}&size=100${cursor}`, key });
    expect(answer.status).toBe(200);
    items.push(...answer.json.items);
    if (!answer.json.meta.next_cursor) return items;
    cursor = `&cursor=${answer.json.meta.next_cursor}`;
  }
}

const channelsOf = (
  key: string,
): Promise<{ id: string; name: string; participants: object[]; meta_data: Record<string, unknown> }[]> =>
  pages(key, '/api/v1/channels?x=1');
const interactionsOf = (key: string, channelId: string): Promise<Interaction[]> =>
  pages(key, `/api/v1/channels/${channelId}/interactions?order=asc`);

/** A module by which an import is killed as it notes that so many conversations are in the log, while it posts others. */
function killedAfter(conversations: number): string {
  const code = `
    import { ProgressFile } from '${import.meta.resolve('#services/cli/import/progress-file.ts')}';
    const { note } = ProgressFile.prototype;
    let noted = 0;
    ProgressFile.prototype.note = function (progress) {
      note.call(this, progress);
      if (++noted === ${conversations}) process.kill(process.pid, 'SIGKILL');
    };`;
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

const LINE = (index: number) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: `question ${index}` },
      { role: 'assistant', content: `answer ${index}` },
    ],
  });

describe('parley import', () => {
  it('is followed by subscribers of a channel to which it adds messages', { timeout: 60_000 }, async () => {
    const { id, key } = await organization();
    const path = join(work, 'followed.jsonl');
    const channel = { id: newId(), name: 'Followed', channel_type: 'chat', participants: [] };
    const content = [{ type: 'text', text: 'x' }];
    const about = { channel_id: channel.id, parent_span_id: null, content_role: 'user_message', content };
    const lines = Array.from({ length: 450 }, () => ({ ...about, span_id: newId(), participant: { type: 'system' } }));
    const imported = async (count: number): Promise<void> => {
      const text = [channel, ...lines.slice(0, count)].map((line) => JSON.stringify(line)).join('\n');
      await writeFile(path, text);
      expect((await parley('import', path, '-o', id)).exitCode).toBe(0);
    };
    await imported(1);
    const [{ id: channelId = '' } = {}] = await channelsOf(key);
    const abort = new AbortController();
    const url = `${await api.listen()}/api/v1/channels/${channelId}/events`;
    const events = await fetch(url, { headers: { authorization: `Bearer ${key}` }, signal: abort.signal });
    expect(events.status).toBe(200);
    let read = '';
    const reading = (async () => {
      for await (const chunk of events.body!.pipeThrough(new TextDecoderStream())) read += chunk;
    })().catch(() => undefined);
    const topic = await recordTopic(api.stores.platform.topics, { organizationId: id, channelId });
    await imported(lines.length);
    await eventually(() => expect(topic.heads.at(-1)).toBe(451));
    topic.stop();
    const sequences = () => [...read.matchAll(/^id: (\d+)$/gm)].map(([, sequence]) => Number(sequence));
    // After the channel and its first message.
    await eventually(() => expect(sequences().at(-1)).toBe(451));
    const post = { method: 'POST', url: `/api/v1/channels/${channelId}/interactions`, key, body: { content } } as const;
    expect((await api.call(post)).status).toBe(200);
    await eventually(() => expect(sequences().at(-1)).toBe(452));
    expect(sequences()).toEqual(Array.from({ length: 450 }, (_, n) => n + 3));
    abort.abort();
    await reading;
  });

  it(
    'turns a conversation with tool calls into turns whose parts are below the question',
    { timeout: 60_000 },
    async () => {
      const { id, key } = await organization();
      const { stdout, stderr, exitCode } = await parley('import', ASSISTANT, '-o', id, '--json');
      expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
      const lines = (await readFile(ASSISTANT, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(JSON.parse(stdout)).toMatchObject({
        format: 'openai',
        channels: lines.length,
        bad: 0,
        already: 0,
        skipped: 0,
      });
      const channels = await channelsOf(key);
      expect(channels).toHaveLength(lines.length);
      const channel = channels.find(({ meta_data: meta }) => meta['source_line'] === 1);
      const interactions = await interactionsOf(key, channel?.id ?? '');
      const [system, question, first, second, ...rest] = interactions;
      const [noted, found, answer, thanks, close] = rest;
      expect(interactions.map((one) => one.content_role)).toEqual([
        'channel_notification',
        'user_message',
        'tool_call',
        'tool_call',
        'tool_call_result',
        'tool_call_result',
        'agent_response',
        'user_message',
        'agent_response',
      ]);
      expect(interactions.map((one) => one.sequence)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect([system, question, thanks].map((one) => one?.parent_span_id)).toEqual([null, null, null]);
      expect([first, second, answer].map((one) => one?.parent_span_id)).toEqual(Array(3).fill(question?.span_id));
      expect([noted, found].map((one) => one?.parent_span_id)).toEqual([first?.span_id, second?.span_id]);
      expect(close?.parent_span_id).toBe(thanks?.span_id);
      for (const one of [first, second, noted, found, answer])
        expect(one?.interaction_id).toBe(question?.interaction_id);
      expect(thanks?.interaction_id).not.toBe(question?.interaction_id);
      const [call] = lines[0].messages[2].tool_calls;
      expect(first?.content[0]).toMatchObject({
        tool_name: call.function.name,
        tool_call_id: call.id,
        tool_args: JSON.parse(call.function.arguments),
      });
      expect(noted?.content[0]).toMatchObject({ tool_name: call.function.name, tool_call_id: call.id });
      expect(question?.metadata['source_time']).toBe(lines[0].created_at);
    },
  );

  it("turns Slack's export into channels with threads, mentions, bots and pictures", { timeout: 60_000 }, async () => {
    const { id, key } = await organization();
    const { stdout, stderr } = await parley('import', SLACK, '-o', id, '--json');
    expect(stderr).toBe('');
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({ format: 'slack', channels: 3, bad: 0, already: 0 });
    const channels = await channelsOf(key);
    const support = channels.find(({ name }) => name === 'support');
    expect(support?.participants).toHaveLength(4);
    const all = (await Promise.all(channels.map((one) => interactionsOf(key, one.id)))).flat();
    expect(all).toHaveLength(summary.imported);
    const days = (await readdir(join(SLACK, 'support'))).sort();
    const source = (
      await Promise.all(days.map(async (day) => JSON.parse(await readFile(join(SLACK, 'support', day), 'utf8'))))
    ).flat();
    const interactions = await interactionsOf(key, support?.id ?? '');
    expect(interactions.map((one) => one.metadata['slack_ts'])).toEqual(source.map(({ ts }) => ts));
    const byTs = new Map(interactions.map((one) => [one.metadata['slack_ts'], one]));
    for (const message of source) {
      const root = message.thread_ts === undefined ? undefined : byTs.get(message.thread_ts);
      const one = byTs.get(message.ts);
      expect(one?.parent_span_id).toBe(root?.span_id ?? null);
      expect(one?.interaction_id).toBe((root ?? one)?.interaction_id);
      expect(one?.participant.type === 'external_agent').toBe(message.subtype === 'bot_message');
    }
    const mentioning = interactions.find((one) => one.content_role === 'user_message' && one.invocation_config);
    const { offset = -1, length = 0 } = mentioning?.invocation_config?.mentions[0] ?? {};
    const text = String(mentioning?.content[0]?.['text']);
    expect(text.slice(offset, offset + length)).toMatch(/^@(ada|ben|cleo|dev)$/);
    expect(interactions.some((one) => one.content.some((item) => item['type'] === 'media'))).toBe(true);
    expect(interactions[0]?.content_role).toBe('channel_notification');
  });

  it(
    "reads Slack's .zip without unpacking it, and recognises messages that it imported from the folder",
    { timeout: 60_000 },
    async () => {
      const { id, key } = await organization();
      const names = (await readdir(SLACK, { recursive: true })).filter((name) => name.endsWith('.json'));
      const entries = await Promise.all(
        names.map(async (name) => ({ name, content: await readFile(join(SLACK, name)) })),
      );
      const path = join(work, 'export.zip');
      await writeFile(path, zipOf(entries));
      const { stdout, stderr } = await parley('import', path, '-o', id, '--json');
      expect(stderr).toBe('');
      const summary = JSON.parse(stdout);
      expect(summary).toMatchObject({ format: 'slack', channels: 3, bad: 0, already: 0 });
      const channels = await channelsOf(key);
      const all = (await Promise.all(channels.map((one) => interactionsOf(key, one.id)))).flat();
      expect(all).toHaveLength(summary.imported);
      const again = await parley('import', SLACK, '-o', id, '--json');
      expect(JSON.parse(again.stdout)).toMatchObject({ imported: 0, already: summary.imported });
    },
  );

  it('posts nothing twice when it is run again', async () => {
    const { id, key } = await organization();
    const first = JSON.parse((await parley('import', ASSISTANT, '-o', id, '--json')).stdout);
    const before = await Promise.all((await channelsOf(key)).map((one) => interactionsOf(key, one.id)));
    const second = JSON.parse((await parley('import', ASSISTANT, '-o', id, '--json')).stdout);
    expect(second).toMatchObject({ imported: 0, already: first.imported, bad: 0, resumed: false });
    const after = await Promise.all((await channelsOf(key)).map((one) => interactionsOf(key, one.id)));
    expect(after).toEqual(before);
  });

  it('resumes without duplicates after it was killed', { timeout: 120_000 }, async () => {
    const { id, key } = await organization();
    const path = join(work, 'killed.jsonl');
    const count = 200;
    await writeFile(path, `${Array.from({ length: count }, (_, index) => LINE(index)).join('\n')}\n`);
    const total = async (): Promise<number> =>
      (await api.call({ method: 'GET', url: '/api/v1/channels?size=1', key })).json.meta.total;
    for (const posted of IN_CAMPAIGN ? [50, 100] : [50]) {
      const dying = ['--import', killedAfter(posted), PARLEY_COMMAND, 'import', path, '-o', id];
      const child = spawn(process.execPath, dying, { env: env(), stdio: 'ignore' });
      await once(child, 'exit');
      expect(child.signalCode).toBe('SIGKILL');
      await eventually(async () => expect(await total()).toBeGreaterThanOrEqual(posted));
      expect(await total()).toBeLessThan(count);
    }
    const { stdout, stderr } = await parley('import', path, '-o', id, '--json');
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({ bad: 0 });
    const channels = await channelsOf(key);
    expect(channels.map((one) => Number(one.meta_data['source_line'])).sort((a, b) => a - b)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    );
    const log = await readLog(api.stores.eventStore.url, 'channel-');
    const posted = Map.groupBy(
      log.filter(({ type }) => type === 'InteractionPosted.v1'),
      ({ stream }) => stream,
    );
    for (const channel of channels) {
      const texts = posted.get(`channel-${channel.id}`)?.map(({ data }) => {
        const [item] = data['content'] as { readonly text: string }[];
        return item?.text;
      });
      const index = Number(channel.meta_data['source_line']) - 1;
      expect(texts).toEqual([`question ${index}`, `answer ${index}`]);
    }
  });

  it('names bad lines by their numbers, leaves them out and imports the rest', async () => {
    const { id, key } = await organization();
    const path = join(work, 'bad.jsonl');
    await writeFile(
      path,
      [LINE(1), '{"messages": [', '', '{"messages": [{"role": "ghost"}]}', LINE(2), '[]'].join('\n'),
    );
    const { stdout, stderr, exitCode } = await parley('import', path, '-o', id, '--json');
    expect(exitCode).toBe(1);
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({ channels: 2, imported: 4, bad: 3 });
    expect(summary.problems.map(({ line }: { line: number }) => line)).toEqual([2, 4, 6]);
    expect(stderr.trim().split('\n')).toEqual([
      'parley: bad.jsonl:2: not JSON',
      expect.stringMatching(/^parley: bad\.jsonl:4: message 1: role: /),
      'parley: bad.jsonl:6: not a JSON object',
      'parley: 3 bad lines were left out, in whole or in part; the rest was imported',
    ]);
    expect(await channelsOf(key)).toHaveLength(2);
  });

  it("reads ChatGPT's .zip, and arrays of conversations", { timeout: 60_000 }, async () => {
    const { id, key } = await organization();
    const said = (role: string, text: string) => ({
      author: { role },
      content: { content_type: 'text', parts: [text] },
    });
    const talks = [1, 2].map((n) => ({
      title: `Talk ${n}`,
      current_node: 'b',
      mapping: {
        a: { parent: null, children: ['b'], message: said('user', `question ${n}`) },
        b: { parent: 'a', children: [], message: said('assistant', `answer ${n}`) },
      },
    }));
    const zip = join(work, 'chatgpt.zip');
    await writeFile(
      zip,
      zipOf([
        { name: 'conversations.json', content: JSON.stringify(talks) },
        { name: 'chat.html', content: '' },
      ]),
    );
    const array = join(work, 'array.json');
    await writeFile(
      array,
      JSON.stringify(
        [1, 2, 3].map((index) => JSON.parse(LINE(index))),
        null,
        2,
      ),
    );
    for (const [path, format, channels] of [
      [zip, 'chatgpt', 2],
      [array, 'openai', 3],
    ] as const) {
      const { stdout, stderr, exitCode } = await parley('import', path, '-o', id, '--json');
      expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
      expect(JSON.parse(stdout)).toMatchObject({ format, channels, imported: 2 * channels, bad: 0 });
      expect(JSON.parse((await parley('import', path, '-o', id, '--json')).stdout)).toMatchObject({ imported: 0 });
    }
    expect((await channelsOf(key)).map(({ name }) => name).sort()).toEqual([
      'Talk 1',
      'Talk 2',
      'question 1',
      'question 2',
      'question 3',
    ]);
  });

  it("adds what is new in a later export of ChatGPT's", { timeout: 60_000 }, async () => {
    const { id, key } = await organization();
    const said = (role: string, text: string) => ({
      author: { role },
      content: { content_type: 'text', parts: [text] },
    });
    const mapping = {
      a: { parent: null, children: ['b'], message: said('user', 'question') },
      b: { parent: 'a', children: [], message: said('assistant', 'answer') },
    };
    const later = {
      a: mapping.a,
      b: { ...mapping.b, children: ['c', 'd'] },
      c: { parent: 'b', children: [], message: said('user', 'more') },
      d: { parent: 'b', children: ['e'], message: said('user', 'more, edited') },
      e: { parent: 'd', children: [], message: said('assistant', 'last') },
    };
    const save = async (name: string, ...talks: object[]): Promise<string> => {
      const path = join(work, name);
      await writeFile(path, JSON.stringify(talks));
      return path;
    };
    const first = await save('first.json', { id: 'talk', title: 'Talk', mapping, current_node: 'b' });
    const second = await save(
      'second.json',
      { id: 'other', title: 'Other', mapping, current_node: 'b' },
      { id: 'talk', title: 'Talk', mapping: later, current_node: 'e' },
    );
    const run = async (path: string) => JSON.parse((await parley('import', path, '-o', id, '--json')).stdout);
    expect(await run(first)).toMatchObject({ imported: 2, already: 0, bad: 0 });
    expect(await run(second)).toMatchObject({ imported: 5, already: 2, bad: 0 });
    const channels = await channelsOf(key);
    expect(channels.map(({ name }) => name).sort()).toEqual(['Other', 'Talk']);
    const talk = channels.find(({ name }) => name === 'Talk');
    const interactions = await interactionsOf(key, talk?.id ?? '');
    const [, answer, one, edited, last] = interactions;
    expect(interactions.map(({ content }) => content[0]?.['text'])).toEqual([
      'question',
      'answer',
      'more',
      'more, edited',
      'last',
    ]);
    expect([one, edited].map((each) => each?.parent_span_id)).toEqual([answer?.span_id, answer?.span_id]);
    expect(new Set([answer, one, edited].map((each) => each?.interaction_id)).size).toBe(3);
    expect(last).toMatchObject({ parent_span_id: edited?.span_id, interaction_id: edited?.interaction_id });
  });

  it(
    'names what it leaves out on purpose, and members without room, also without --json',
    { timeout: 60_000 },
    async () => {
      const { id } = await organization();
      const message = { type: 'message', ts: '1772445600.000100' };
      const path = join(work, 'quiet.zip');
      await writeFile(
        path,
        zipOf([
          { name: 'users.json', content: '[]' },
          { name: 'channels.json', content: JSON.stringify([{ id: 'C1', name: 'lab' }]) },
          {
            name: 'lab/2026-03-02.json',
            content: JSON.stringify([{ ...message, text: 'hi' }, { ...message, subtype: 'tombstone' }, message]),
          },
        ]),
      );
      const { stdout } = await parley('import', path, '-o', id);
      expect(stdout).toMatch(/^skipped_because +a deleted message \(1\), a message without text or files \(1\)$/m);
      const large = join(work, 'large.jsonl');
      const extra = 'x'.repeat(200_000);
      await writeFile(large, `${JSON.stringify({ messages: [{ role: 'user', content: 'hi', extra }] })}\n`);
      expect((await parley('import', large, '-o', id)).stdout).toMatch(/^left_out +extra \(1\)$/m);
    },
  );

  it('fails if nothing could be imported', async () => {
    const path = join(work, 'nothing.jsonl');
    await writeFile(path, 'hello\n');
    const forced = await parley('import', path, '--format', 'openai');
    expect(forced.exitCode).toBe(1);
    expect(forced.stderr).toMatch(/nothing\.jsonl:1: not JSON\nparley: nothing could be imported; formats .*\n$/);
    const unknown = await parley('import', path);
    expect(unknown).toMatchObject({ exitCode: 1, stdout: '' });
    expect(unknown.stderr).toMatch(/the format of .* is unknown/);
  });

  it.each([
    ['Alpaca', { instruction: 'Say hello', input: '', output: 'Hello!' }],
    ['OASST', { message_id: '1', parent_id: null, text: 'Hi', role: 'prompter', lang: 'en' }],
    ['a tree of OASST', { message_tree_id: '1', prompt: { text: 'Hi', role: 'prompter', replies: [] } }],
    ['LibreChat', { conversationId: '1', title: 'A', messages: [{ messageId: '1', text: 'Hi', sender: 'User' }] }],
    ['Open WebUI', [{ id: '1', title: 'A', chat: { history: { messages: {} }, messages: [] } }]],
  ])('names the formats that it reads for %s, which is none of them', async (_, value) => {
    const path = join(work, 'foreign.json');
    await writeFile(path, JSON.stringify(value));
    const { exitCode, stderr } = await parley('import', path);
    expect(exitCode).toBe(1);
    for (const format of ['slack', 'chatgpt', 'sharegpt', 'openai', 'parley']) expect(stderr).toContain(format);
  });

  it('names and counts participants beyond those of a channel', async () => {
    const { id } = await organization();
    const path = join(work, 'crowd.jsonl');
    const messages = Array.from({ length: 1_002 }, (_, n) => ({ role: 'user', name: `guest ${n}`, content: 'hi' }));
    await writeFile(path, JSON.stringify({ messages }));
    const { exitCode, stdout, stderr } = await parley('import', path, '-o', id);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^imported +1002$/m);
    expect(stdout).toMatch(/^left_out +participants \(2\)$/m);
    expect(stderr).toMatch(/crowd\.jsonl:1: 2 of 1002 participants are left out.*: guest 1000, guest 1001\n/);
  });
});

describe('parley export', () => {
  it('exports a channel so that importing it makes an equal tree', async () => {
    const [from, to] = [await organization(), await organization()];
    await parley('import', SLACK, '-o', from.id);
    const original = (await channelsOf(from.key)).find(({ name }) => name === 'support');
    const path = join(work, 'support.parley.jsonl');
    const exported = await parley('export', original?.id ?? '', '--output', path, '-o', from.id);
    expect(exported).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    const before = await interactionsOf(from.key, original?.id ?? '');
    const [head, ...lines] = (await readFile(path, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(head).toEqual(
      (await api.call({ method: 'GET', url: `/api/v1/channels/${original?.id}`, key: from.key })).json,
    );
    expect(lines).toEqual(before);

    const imported = await parley('import', path, '-o', to.id, '--json');
    expect(JSON.parse(imported.stdout)).toMatchObject({
      format: 'parley',
      channels: 1,
      imported: before.length,
      bad: 0,
    });
    const [copy] = await channelsOf(to.key);
    const own = { id: null, channel_id: null, created_at: null, organization_id: null };
    const after = await interactionsOf(to.key, copy?.id ?? '');
    expect(after.map((one) => ({ ...one, ...own }))).toEqual(before.map((one) => ({ ...one, ...own })));
    expect(copy).toMatchObject({
      name: original?.name,
      meta_data: original?.meta_data,
      participants: original?.participants,
    });
    expect(copy?.id).not.toBe(original?.id);
  });

  it('keeps the names of users and agents that the organization of the import does not have', async () => {
    const [from, to] = [await organization(), await organization()];
    const post = async (url: string, body: object) =>
      (await api.call({ method: 'POST', url, key: from.key, body })).json;
    const agent = await post('/api/v1/agents', { name: 'Robin' });
    const channel = await post('/api/v1/channels', { name: 'a', participants: [{ type: 'agent', id: agent.id }] });
    const path = join(work, 'agents.parley.jsonl');
    await parley('export', channel.id, '--output', path, '-o', from.id);
    for (const [{ id, key }, participant] of [
      [to, { type: 'external_agent', agent_metadata: { source_agent_id: agent.id, name: 'Robin' } }],
      [from, { type: 'agent', id: agent.id, name: 'Robin' }],
    ] as const) {
      expect((await parley('import', path, '-o', id)).exitCode).toBe(0);
      expect((await channelsOf(key))[0]?.participants).toMatchObject([participant]);
    }
  });

  it('reports a missing channel, and leaves no file', async () => {
    const { exitCode, stderr } = await parley('export', 'nope', '--output', join(work, 'none.jsonl'));
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'parley: the organization has no channel nope\n' });
    expect(await readdir(work)).not.toContain('none.jsonl');
  });

  it('says in a sentence that a file cannot be written', async () => {
    const { id, key } = await organization();
    const { json: channel } = await api.call({ method: 'POST', url: '/api/v1/channels', key, body: { name: 'a' } });
    const output = join(work, 'no such folder', 'a.jsonl');
    const { exitCode, stderr } = await parley('export', channel.id, '--output', output, '-o', id);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^parley: .*a\.jsonl cannot be written: there is no such file or folder\n$/);
    const taken = await parley('export', channel.id, '--output', work, '-o', id);
    expect(taken.stderr).toBe(`parley: ${work} cannot be written: it is a folder\n`);
    await using full = await open('/dev/full', 'w');
    const child = spawn(process.execPath, [PARLEY_COMMAND, 'export', channel.id, '-o', id], {
      env: env(),
      stdio: ['ignore', full.fd, 'pipe'],
    });
    const [said] = await Promise.all([text(Readable.from(child.stderr ?? [])), once(child, 'exit')]);
    expect({ said, exitCode: child.exitCode }).toEqual({
      said: 'parley: the output cannot be written: the disk is full\n',
      exitCode: 1,
    });
  });
});
