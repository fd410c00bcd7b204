import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestApi, type TestApi, type TestInstance } from '#test/support/test-api.ts';
import { rounds, roundsTimeoutMs } from '#test/support/rounds.ts';

let api: TestApi;
let processes: readonly TestInstance[];
/** Callers that act and read: two users by their own keys, and a service for agents. */
let users: readonly { readonly name: string; readonly key: string }[];
let service: string;
let channelId: string;

beforeAll(async () => {
  api = await startTestApi();
  processes = [api, await api.startInstance()];
  users = await Promise.all(
    ['Ada', 'Bob'].map(async (name) => {
      const { id } = await root('/api/v1/users', { display_name: name });
      const principal = { type: 'user', id };
      return {
        name,
        key: (await root('/api/v1/keys', { name, scopes: ['read', 'write'], access: 'organization', principal })).key,
      };
    }),
  );
  const principal = { type: 'service', id: 'bridge' };
  service = (await root('/api/v1/keys', { name: 'bridge', scopes: ['read', 'write'], principal })).key;
  channelId = (await root('/api/v1/channels', { name: 'lab' })).id;
});
afterAll(async () => {
  await processes[1]?.stop();
  await api.stop();
});

async function root(url: string, body: object) {
  const answer = await api.call({ method: 'POST', url, key: api.rootKey, body });
  expect(answer.status).toBe(200);
  return answer.json;
}

const EMOJIS = ['👍', '🎉', '👩🏽‍🚀'];
/** The last agent has no name, and is not shown. */
const AGENTS = [
  { agent_id: 'agent-1', agent_name: 'Otto' },
  { agent_id: 'agent-2', agent_name: null },
];
/** Users first, then agents. */
const REACTORS = 4;

interface Step {
  readonly message: number;
  readonly reactor: number;
  readonly emoji: string;
  readonly adds: boolean;
  readonly process: number;
}
const steps = fc.array(
  fc.record({
    message: fc.nat({ max: 1 }),
    reactor: fc.nat({ max: REACTORS - 1 }),
    emoji: fc.constantFrom(...EMOJIS),
    adds: fc.boolean(),
    process: fc.nat({ max: 1 }),
  }),
  { minLength: 1, maxLength: 25 },
);

async function run({ message, reactor, emoji, adds, process }: Step, ids: readonly string[]): Promise<void> {
  const url = `/api/v1/interactions/${ids[message]}/reactions/${encodeURIComponent(emoji)}`;
  const agent = AGENTS[reactor - users.length];
  const key = users[reactor]?.key ?? service;
  const instance = processes[process] ?? api;
  const answer = adds
    ? await instance.call({ method: 'PUT', url, key, ...(agent && { body: agent }) })
    : await instance.call({ method: 'DELETE', url: agent ? `${url}?agent_id=${agent.agent_id}` : url, key });
  expect(answer.status).toBe(200);
}

/** The plain model: reactors by emoji, in the order in which they reacted. */
function presentReactions(history: readonly Step[], message: number): { emoji: string; reactor: number }[] {
  const present: { emoji: string; reactor: number }[] = [];
  for (const step of history.filter((one) => one.message === message)) {
    const at = present.findIndex(({ emoji, reactor }) => emoji === step.emoji && reactor === step.reactor);
    if (step.adds && at < 0) present.push({ emoji: step.emoji, reactor: step.reactor });
    else if (!step.adds && at >= 0) present.splice(at, 1);
  }
  return present;
}

/** @param reader index of the reading user; -1 for the service */
function expected(history: readonly Step[], message: number, reader: number) {
  const present = presentReactions(history, message);
  const emojis = [...new Set(present.map(({ emoji }) => emoji))];
  if (emojis.length === 0) return null;
  return emojis.map((emoji) => {
    const reactors = present.filter((one) => one.emoji === emoji).map(({ reactor }) => reactor);
    const inOrder = [...reactors.filter((one) => one < users.length), ...reactors.filter((one) => one >= users.length)];
    return {
      emoji,
      count: reactors.length,
      reacted_by_me: reactors.includes(reader),
      reacted_by_agent: reactors.some((one) => one >= users.length),
      reactor_names: inOrder
        .filter((one) => one !== reader)
        .map((one) => users[one]?.name ?? AGENTS[one - users.length]?.agent_name)
        .filter((name) => typeof name === 'string'),
    };
  });
}

async function shown(id: string, reader: number, process: number) {
  const key = users[reader]?.key ?? service;
  const answer = await (processes[process] ?? api).call({ method: 'GET', url: `/api/v1/interactions/${id}`, key });
  const summaries: Record<string, unknown>[] | null = answer.json.reactions;
  return (
    summaries?.map(({ emoji, count, reacted_by_me, reacted_by_agent, reactor_names }) => ({
      emoji,
      count,
      reacted_by_me,
      reacted_by_agent,
      reactor_names,
    })) ?? null
  );
}

/** The same without the orders, which are undefined for concurrent commands. */
function unordered(summaries: readonly object[] | null): unknown {
  return summaries
    ?.map((one) => ({ ...one, reactor_names: [...(Reflect.get(one, 'reactor_names') as string[])].sort() }))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

async function twoMessages(): Promise<string[]> {
  const body = { content: [{ type: 'text', text: 'hello' }] };
  const url = `/api/v1/channels/${channelId}/interactions`;
  return [(await root(url, body)).id, (await root(url, body)).id];
}

describe('reactions of users and agents through two processes', () => {
  it(
    'match a plain model for every reader, when sent one after another',
    async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (history) => {
          const ids = await twoMessages();
          for (const step of history) await run(step, ids);
          for (const [message, id] of ids.entries()) {
            for (const reader of [0, 1, -1]) {
              for (const process of [0, 1]) {
                expect(await shown(id, reader, process)).toEqual(expected(history, message, reader));
              }
            }
          }
        }),
        { numRuns: rounds(10) },
      );
    },
    roundsTimeoutMs(60_000),
  );

  it(
    'match the commands of each reactor, when all of them act at once',
    async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (history) => {
          const ids = await twoMessages();
          await Promise.all(
            Array.from({ length: REACTORS }, async (_, reactor) => {
              for (const step of history) if (step.reactor === reactor) await run(step, ids);
            }),
          );
          for (const [message, id] of ids.entries()) {
            for (const reader of [0, 1, -1]) {
              const found = await shown(id, reader, message);
              expect(unordered(found)).toEqual(unordered(expected(history, message, reader)));
            }
          }
        }),
        { numRuns: rounds(10) },
      );
    },
    roundsTimeoutMs(60_000),
  );
});
