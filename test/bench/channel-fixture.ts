/** A running Parley with channels in it, as its users would make them: over HTTP. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createApiKey } from '#libs/platform/http/index.ts';

import { startParley } from './child-process.ts';
import type { Parley } from './child-process.ts';

export interface ChannelFixture {
  /** The headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Paths of the channels. */
  readonly paths: readonly string[];
  /** The body that `GET` answers for the first of them. */
  readonly body: string;
  /** Starts Parley again on the same data. */
  start(flags?: readonly string[]): Promise<Parley>;
  cleanUp(): Promise<void>;
}

/** @param env further environment variables of Parley */
export async function prepareChannels(
  count: number,
  env: Readonly<Record<string, string>> = {},
): Promise<ChannelFixture> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const apiKey = createApiKey();
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const start = (flags: readonly string[] = []) => startParley(dataDir, apiKey, { flags, env });
  const parley = await start();
  try {
    const paths: string[] = [];
    for (let index = 0; index < count; index++) {
      const created = await answerOf(new URL('/api/v1/channels', parley.url), {
        method: 'POST',
        headers,
        body: NEW_CHANNEL,
      });
      paths.push(`/api/v1/channels/${(JSON.parse(created) as { id: string }).id}`);
    }
    const body = await answerOf(new URL(paths[0] ?? '', parley.url), { headers });
    return { headers, paths, body, start, cleanUp: () => rm(dataDir, { recursive: true, force: true }) };
  } finally {
    await parley.stop();
  }
}

/** With an agent and a guest beside its owner, and some meta data: about 1 KiB of JSON. */
const NEW_CHANNEL = JSON.stringify({
  name: 'Support of order 4711',
  type: 'websocket',
  participants: [
    {
      type: 'agent',
      id: '0198f3aa-7c11-7d55-8e7a-000000000001',
      name: 'Ada',
      description: 'Answers questions about orders, deliveries and returns.',
      is_active: true,
      personality: 'Friendly and precise',
      allow_html_responses: false,
    },
    { type: 'non_authenticated_user', user_metadata: { source: 'web', locale: 'de-CH' } },
  ],
  meta_data: { order: 4711, tags: ['delivery', 'urgent'], customer: { tier: 'gold', since: '2021-04-01' } },
  agent_invocation_behavior: 'all_messages',
});

async function answerOf(url: URL, init: RequestInit): Promise<string> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${url.pathname}: ${response.status} ${text}`);
  return text;
}
