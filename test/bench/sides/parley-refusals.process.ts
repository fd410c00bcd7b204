/** The same requests about what others have and about what does not exist, in turn, over the whole API. */
import { interactionId } from '#libs/features/channels/index.ts';
import { userIdOf } from '#libs/features/users/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { type Call, startTestApi } from '#test/support/test-api.ts';

import { answerTasks } from '../child-process.ts';
import {
  type Refusal,
  REFUSALS,
  type RefusalsAnswer,
  type RefusalsSide,
  type RefusalsTask,
} from '../refusals.benchmark.ts';
import { median } from '../statistics.ts';

const WARM_UP = 50;

answerTasks<RefusalsTask, RefusalsAnswer>(async ({ requests }) => {
  const api = await startTestApi();
  const shop = await Signer.create();
  await register(api, shop);
  const send = (key: string, method: Call['method'], path: string, body?: object) =>
    api.call({ method, url: `/api/v1/${path}`, key, ...(body && { body }) });
  const [ada, eve] = [await shop.token('ada'), await shop.token('eve')];
  for (const key of [ada, eve]) await send(key, 'GET', 'channels');
  const { json: other } = await send(api.rootKey, 'POST', 'organizations', { name: 'Other' });
  const made = await send(api.rootKey, 'POST', 'keys', {
    name: 'k',
    organization_id: other.id,
    principal: { type: 'service', id: 's' },
    scopes: ['read', 'write'],
  });
  const keys = { member: eve, key: String(made.json.key) };

  const user = userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject: 'ada' });
  const participants = [{ type: 'authenticated_user', user_id: user }];
  const message = { content: [{ type: 'text', text: 'Where is my order?' }] };
  const channels: string[] = [];
  for (let n = 0; n < 50; n += 1) {
    const { json } = await send(api.rootKey, 'POST', 'channels', { name: `Channel ${n}`, participants });
    for (let m = 0; m < 5; m += 1) await send(ada, 'POST', `channels/${json.id}/interactions`, message);
    channels.push(json.id);
  }
  const works: Record<string, (key: string, channel: string) => ReturnType<typeof send>> = {
    get: (key, channelId) =>
      send(key, 'GET', `interactions/${interactionId({ channelId, sequence: 2 as ChannelSequence })}`),
    post: (key, channel) => send(key, 'POST', `channels/${channel}/interactions`, message),
    ticket: (key, channel) => send(key, 'POST', `channels/${channel}/websocket_ticket`),
    search: (key, channel) => send(key, 'GET', `interactions/search?q=order&channel_id=${channel}`),
  };

  const times = new Map<RefusalsSide, number[]>();
  const listOf = (side: RefusalsSide): number[] => {
    const known = times.get(side) ?? [];
    times.set(side, known);
    return known;
  };
  for (let n = 0; n < requests + WARM_UP; n += 1) {
    for (const name of Object.keys(REFUSALS) as Refusal[]) {
      const [caller = 'key', what = 'get'] = name.split('-') as ['key' | 'member', string];
      // Which side is first takes turns, too.
      for (const side of n % 2 === 0 ? (['others', 'nothing'] as const) : (['nothing', 'others'] as const)) {
        const channel = side === 'others' ? (channels[n % channels.length] ?? '') : newId();
        const started = performance.now();
        const answer = await works[what]?.(keys[caller], channel);
        const us = (performance.now() - started) * 1_000;
        if (answer?.status !== 404) throw new Error(`${name} of ${side}: ${answer?.status} ${answer?.bytes}`);
        const key = `${side} ${name}` as const;
        if (n >= WARM_UP) listOf(key).push(us);
      }
    }
  }
  await api.stop();
  const sides = Object.keys(REFUSALS).flatMap((name) => [`others ${name}`, `nothing ${name}`] as RefusalsSide[]);
  return Object.fromEntries(sides.map((side) => [side, { median: median(times.get(side) ?? []) }])) as RefusalsAnswer;
});
