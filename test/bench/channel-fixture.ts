/** A running Parley with channels and interactions, created over HTTP as users create them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createApiKey } from '#libs/platform/http/index.ts';

import { eventually } from '#test/support/eventually.ts';

import { type Parley, startParley } from './child-process.ts';
import { sampleMessages } from './sample-messages.ts';

export interface ChannelFixture {
  /** The headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Paths that are read or changed. */
  readonly paths: readonly string[];
  /** The body that `GET` answers for the first of them. */
  readonly body: string;
  /** Starts Parley again on the same data. */
  start(flags?: readonly string[]): Promise<Parley>;
  cleanUp(): Promise<void>;
}

interface ChannelOptions {
  /** Whether an agent takes part, so that each message leads to a decision whether it answers. Default: true. */
  readonly hasAgent?: boolean;
  /** Further environment variables of Parley. */
  readonly env?: Readonly<Record<string, string>>;
}

export function prepareChannels(count: number, { hasAgent, env }: ChannelOptions = {}): Promise<ChannelFixture> {
  return prepare(async (post) => {
    const paths: string[] = [];
    for (let index = 0; index < count; index++) paths.push(await newChannel(post, hasAgent));
    return paths;
  }, env);
}

/** Which interactions of a channel are read. */
export type InteractionRead = 'one' | 'nested' | 'list';

/** A channel with a tree of six interactions, followed by conversations: more than a page of 50. */
export function prepareInteractions(what: InteractionRead): Promise<ChannelFixture> {
  return prepare(async (post) => {
    const channel = await newChannel(post);
    const spans = new Map<string, string>();
    let root = '';
    for (const [index, { key, parentKey, body }] of sampleMessages().slice(0, 64).entries()) {
      const posted = await post(`${channel}/interactions`, {
        ...body,
        ...(parentKey !== null && { parent_span_id: spans.get(parentKey) }),
      });
      spans.set(key, String(posted['span_id']));
      // The first message is the instructions of the assistant; the second one opens the first turn.
      if (index === 1) root = `/api/v1/interactions/${String(posted['id'])}`;
    }
    switch (what) {
      case 'one':
        return [root];
      case 'nested':
        return [`${root}?include_nested_interactions=true`];
      case 'list':
        return [`${channel}/interactions?size=50`];
    }
  });
}

const AT_ONCE = 25;
const CHECK_MS = 120_000;

/** Channels with one interaction each; all of the same message, so that all answers have the same size. */
export function prepareManyInteractions(count: number): Promise<ChannelFixture> {
  const [message] = sampleMessages();
  return prepare(async (post) => {
    const paths: string[] = [];
    while (paths.length < count) {
      const more = Array.from({ length: AT_ONCE }, async () => {
        const { id } = await post(`${await newChannel(post)}/interactions`, { ...message?.body });
        return `/api/v1/interactions/${String(id)}`;
      });
      paths.push(...(await Promise.all(more)));
    }
    return paths;
  });
}

/** A channel with interactions of the same message; the paths are those of all, or of the pages that end before each. */
export function prepareDistinctReads(what: 'one' | 'list', count: number): Promise<ChannelFixture> {
  const [message] = sampleMessages();
  return prepare(async (post) => {
    const channel = await newChannel(post);
    const paths: string[] = [];
    const postSome = async (): Promise<void> => {
      for (let index = 0; index < count / AT_ONCE; index++) {
        const { id, sequence } = await post(`${channel}/interactions`, { ...message?.body });
        if (what === 'one') paths.push(`/api/v1/interactions/${String(id)}`);
        // The first pages are not full.
        else if (Number(sequence) > 100)
          paths.push(`${channel}/interactions?size=50&before_sequence=${String(sequence)}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, postSome));
    return paths;
  });
}

type Post = (path: string, body: object) => Promise<Record<string, unknown>>;

/** @param fill creates the data to read, and returns its paths */
async function prepare(
  fill: (post: Post) => Promise<string[]>,
  env: Readonly<Record<string, string>> = {},
): Promise<ChannelFixture> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const apiKey = createApiKey();
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const start = async (flags: readonly string[] = []): Promise<Parley> => {
    const parley = await startParley(dataDir, apiKey, { flags, env });
    // A gateway alone checks nothing.
    if (env['ROLES'] === undefined)
      await eventually(() => isChecked(parley.url), { timeoutMs: CHECK_MS, everyMs: 100 });
    return parley;
  };
  const parley = await start();
  try {
    const paths = await fill(async (path, body) => {
      const answer = await answerOf(new URL(path, parley.url), { method: 'POST', headers, body: JSON.stringify(body) });
      return JSON.parse(answer) as Record<string, unknown>;
    });
    const body = await answerOf(new URL(paths[0] ?? '', parley.url), { headers });
    return { headers, paths, body, start, cleanUp: () => rm(dataDir, { recursive: true, force: true }) };
  } finally {
    await parley.stop();
  }
}

/** A start is followed by a check of all read models against the log, as there is one a day: it is not part of a row. */
async function isChecked(url: URL): Promise<boolean> {
  const health = (await (await fetch(new URL('/health/ready', url))).json()) as Health;
  return health.checks?.projection?.detail?.check?.completed != null;
}

interface Health {
  readonly checks?: {
    readonly projection?: { readonly detail?: { readonly check?: { readonly completed?: unknown } } };
  };
}

async function newChannel(post: Post, hasAgent = true): Promise<string> {
  const guest = { type: 'non_authenticated_user', user_metadata: { source: 'web', locale: 'de-CH' } };
  const agents = hasAgent ? [{ type: 'agent', id: (await post('/api/v1/agents', AGENT))['id'] }] : [];
  const channel = await post('/api/v1/channels', { ...NEW_CHANNEL, participants: [...agents, guest] });
  return `/api/v1/channels/${String(channel['id'])}`;
}

const AGENT = {
  name: 'Ada',
  description: 'Answers questions about orders, deliveries and returns.',
  personality: 'Friendly and precise',
};

/** With an agent and a guest beside its owner, and some meta data: about 1 KiB of JSON. */
const NEW_CHANNEL = {
  name: 'Support of order 4711',
  type: 'websocket',
  meta_data: { order: 4711, tags: ['delivery', 'urgent'], customer: { tier: 'gold', since: '2021-04-01' } },
  agent_invocation_behavior: 'at_mentions_only',
};

async function answerOf(url: URL, init: RequestInit): Promise<string> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${url.pathname}: ${response.status} ${text}`);
  return text;
}
