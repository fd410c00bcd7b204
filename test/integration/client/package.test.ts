/** The client, packed and installed without any other part of Parley, against a running Parley. */
import { execFile, spawn } from 'node:child_process';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { installClient, type InstalledClient } from '#test/support/client-package.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';

const root = join(import.meta.dirname, '../../..');

/** Follows a channel in which it posts, from the beginning to its last post; then prints what it received. */
const PROGRAM = `
import { ParleyClient } from '@parley/client';
const [url, apiKey] = process.argv.slice(2);
const client = new ParleyClient({ url, apiKey });
const { data: channel } = await client.rest.POST('/api/v1/channels', { body: { name: 'Packed' } });
const subscription = client.channel(channel.id).subscribe({ after: 0 });
const text = (text) => ({ content: [{ type: 'text', text }] });
const posted = subscription.send('interaction.post', text('by websocket')).then(async ({ seq }) => {
  const { data } = await client.rest.POST('/api/v1/channels/{id}/interactions', {
    params: { path: { id: channel.id } },
    body: text('by REST'),
  });
  return [seq, data.sequence];
});
const seen = [];
try {
  for await (const { seq, type } of subscription) {
    seen.push([seq, type]);
    if (seq === (await posted).at(-1)) break;
  }
  console.log(JSON.stringify({ seen, posted: await posted, cursor: subscription.cursor }));
} catch (error) {
  posted.catch(() => undefined);
  console.log(JSON.stringify({ failed: error.code }));
}
`;

const CONSUMER = `
import { ParleyClient, SubscriptionError } from '@parley/client';
const client = new ParleyClient({ url: 'http://127.0.0.1:8080', apiKey: 'key', WebSocket });
const path = { id: 'x' };
const { data } = await client.rest.GET('/api/v1/channels/{id}', { params: { path } });
export const name: string | undefined = data?.name;
// @ts-expect-error there is no such path
await client.rest.GET('/api/v1/chanels/{id}', { params: { path } });
// @ts-expect-error a channel has no weather
export const weather = data?.weather;
const subscription = client.channel('x').subscribe({ after: 0, include: ['nested'] });
for await (const event of subscription) {
  if (event.type === 'interaction.posted') event.data?.content satisfies unknown[] | undefined;
  // @ts-expect-error it is a number
  event.seq satisfies string;
}
await subscription.send('typing');
await subscription.send('reaction.add', { interaction_id: 'i', emoji: '👍' });
// @ts-expect-error the emoji is missing
await subscription.send('reaction.add', { interaction_id: 'i' });
export const reason = (error: unknown) => (error instanceof SubscriptionError ? error.code : null);
`;

const EXAMPLES_SURROUNDINGS = `
import { ParleyClient, refusalOf } from '@parley/client';
declare const apiKey: string, id: string, interaction_id: string;
declare const event: import('@parley/client').ChannelEvent;
declare const client: ParleyClient;
declare const subscription: ReturnType<ReturnType<ParleyClient['channel']>['subscribe']>;
declare const participant: { type: 'external_agent' };
declare const model: AsyncIterable<string>;
`;

/** The code blocks of one language in a text. */
async function examplesIn(file: string, language: string): Promise<string[]> {
  const text = await readFile(join(root, file), 'utf8');
  return text
    .split(`\`\`\`${language}\n`)
    .slice(1)
    .map((rest) => rest.slice(0, rest.indexOf('\n```')));
}

describe('the packed client', { timeout: 120_000 }, () => {
  let client: InstalledClient;
  let parley: ParleyHere;

  beforeAll(async () => {
    client = await installClient();
    parley = await startParleyHere();
    await writeFile(join(client.folder, 'program.mjs'), PROGRAM);
  }, 120_000);
  afterAll(async () => {
    await parley?.stop();
    await client?.remove();
  });

  const follow = async (...flags: string[]): Promise<unknown> =>
    JSON.parse(await client.node(...flags, 'program.mjs', parley.baseUrl, parley.apiKey));
  async function compile(file: string, moduleResolution: string): Promise<unknown> {
    const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--types', ''];
    const module = moduleResolution === 'bundler' ? 'esnext' : moduleResolution;
    const tsc = join(root, 'node_modules/.bin/tsc');
    const args = [...options, '--lib', 'es2023,dom', '--module', module, '--moduleResolution', moduleResolution];
    return promisify(execFile)(tsc, [...args, file], { cwd: client.folder }).catch((error: unknown) => error);
  }
  const whole = {
    seen: [
      [1, 'channel.created'],
      [2, 'interaction.posted'],
      [3, 'interaction.posted'],
    ],
    posted: [2, 3],
    cursor: 3,
  };

  it('has its dependencies, and nothing of the server', async () => {
    const installed = await readdir(join(client.folder, 'node_modules'));
    expect(installed.filter((name) => !name.startsWith('.')).sort()).toEqual([
      '@parley',
      'openapi-fetch',
      'openapi-typescript-helpers',
    ]);
    expect((await readdir(join(client.folder, 'node_modules/@parley/client'))).sort()).toEqual([
      'README.md',
      'dist',
      'package.json',
    ]);
  });

  it('takes less than 16 KB of a web page, with its dependencies', async () => {
    const entry = join(client.folder, 'page.mjs');
    await writeFile(entry, "export * from '@parley/client';");
    const bundle = await rolldown({ input: entry, cwd: client.folder, platform: 'browser' });
    const { output } = await bundle.generate({ minify: true });
    await bundle.close();
    expect(output).toHaveLength(1);
    const { length } = gzipSync(output[0].code);
    expect(length).toBeLessThan(16_384);
    // It is the whole client.
    expect(length).toBeGreaterThan(6_000);
  });

  it.each(['nodenext', 'bundler'])('gives its user types that are right and not loose (%s)', async (resolution) => {
    await writeFile(join(client.folder, 'consumer.ts'), CONSUMER);
    expect(await compile('consumer.ts', resolution)).toMatchObject({ stdout: '' });
  });

  it('has a README whose examples compile', async () => {
    const blocks = await examplesIn('libs/client/README.md', 'ts');
    expect(blocks.length).toBeGreaterThan(4);
    // Each compiles by itself, with declarations of the names that the text introduces.
    const functions = blocks.map((code, index) => `async function example${index}() {\n${code}\n}`);
    const withoutImports = functions.join('\n').replace(/^import .*$/gm, '');
    await writeFile(join(client.folder, 'examples.ts'), EXAMPLES_SURROUNDINGS + withoutImports);
    expect(await compile('examples.ts', 'nodenext')).toMatchObject({ stdout: '' });
  });

  it('does what the README shows', async () => {
    const example = await examplesIn('README.md', 'js');
    expect(example).toHaveLength(1);
    await writeFile(join(client.folder, 'example.mjs'), example[0] ?? '');
    const { id } = (await parley.api.post('/api/v1/channels', { name: 'Shown' })).json() as { id: string };
    const env = { PARLEY_URL: parley.baseUrl, PARLEY_KEY: parley.apiKey, CHANNEL: id };
    const running = spawn(process.execPath, ['example.mjs'], { cwd: client.folder, env });
    let output = '';
    running.stdout.on('data', (chunk) => (output += String(chunk)));
    running.stderr.on('data', (chunk) => (output += String(chunk)));
    const interactions = `/api/v1/channels/${id}/interactions`;
    const participant = { type: 'external_agent' };
    try {
      await eventually(() => expect(output).toBe('1 channel.created \n'));
      const answer = { content: [], content_role: 'agent_response', complete: false, participant };
      const { id: answerId } = (await parley.api.post(interactions, answer)).json() as { id: string };
      await eventually(() => expect(output).toContain('2 interaction.posted'));
      await parley.api.post(`/api/v1/interactions/${answerId}/deltas`, { offset: 0, text: 'On its' });
      await eventually(() => expect(output).toContain('is being written: On its\n'));
      await parley.api.post(`/api/v1/interactions/${answerId}/complete`, {
        content: [{ type: 'text', text: 'On its way.' }],
      });
      await eventually(() => expect(output).toMatch(/3 interaction.completed On its way.\n$/));
    } finally {
      running.kill();
    }
  });

  it('follows a channel', async () => {
    expect(await follow()).toEqual(whole);
  });

  it('fails without a WebSocket implementation, and uses that of ws once it is installed', async () => {
    // Like Node 20.
    const flag = '--no-experimental-websocket';
    expect(await follow(flag)).toEqual({ failed: 'no_websocket' });
    await cp(join(root, 'node_modules/ws'), join(client.folder, 'node_modules/ws'), { recursive: true });
    expect(await follow(flag)).toEqual(whole);
  });
});
