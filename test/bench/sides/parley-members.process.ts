/** The same requests with a token and with a key, in turn, over the whole API. */
import { userIdOf } from '#libs/features/users/index.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { type Call, startTestApi } from '#test/support/test-api.ts';

import { answerTasks } from '../child-process.ts';
import type { MembersAnswer, MembersSide, MembersTask } from '../members.benchmark.ts';
import { median } from '../statistics.ts';

/** Requests of one side before the other has its turn. */
const BATCH = 20;
const WARM_UP_ROUNDS = 10;

answerTasks<MembersTask, MembersAnswer>(async ({ seconds, channels }) => {
  const api = await startTestApi();
  const shop = await Signer.create();
  await register(api, shop);
  const keys = { token: await shop.token('ada'), key: api.rootKey };
  const send = async (key: string, method: Call['method'], path: string, body?: object) => {
    const answer = await api.call({ method, url: `/api/v1/${path}`, key, ...(body && { body }) });
    if (answer.status !== 200) throw new Error(answer.bytes);
    return answer.json;
  };
  await send(keys.token, 'GET', 'channels');
  const user = userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject: 'ada' });
  const participants = [{ type: 'authenticated_user', user_id: user }];
  let channel = '';
  for (let n = 0; n < channels; n += 1) {
    channel = (await send(keys.key, 'POST', 'channels', { name: `Channel ${n}`, participants })).id;
  }
  const message = { content: [{ type: 'text', text: 'Where is my order?' }] };
  const { id } = await send(keys.token, 'POST', `channels/${channel}/interactions`, message);
  const works = {
    get: (key: string) => send(key, 'GET', `interactions/${id}`),
    post: (key: string) => send(key, 'POST', `channels/${channel}/interactions`, message),
    list: (key: string) => send(key, 'GET', 'channels'),
  };

  const times = new Map<MembersSide, number[]>();
  const started = performance.now();
  for (let round = 0; round < 40 || performance.now() - started < seconds * 1000; round += 1) {
    for (const request of ['get', 'post', 'list'] as const) {
      // Which side is first takes turns, too.
      for (const side of round % 2 === 0 ? (['token', 'key'] as const) : (['key', 'token'] as const)) {
        const before = process.cpuUsage();
        for (let n = 0; n < BATCH; n += 1) await works[request](keys[side]);
        const { user: own, system } = process.cpuUsage(before);
        const name = `${side}-${request}` as const;
        if (round >= WARM_UP_ROUNDS) times.set(name, [...(times.get(name) ?? []), (own + system) / 1000 / BATCH]);
      }
    }
  }
  await api.stop();
  const of = (name: MembersSide) => ({ cpu: median(times.get(name) ?? []) });
  return {
    'token-get': of('token-get'),
    'key-get': of('key-get'),
    'token-post': of('token-post'),
    'key-post': of('key-post'),
    'token-list': of('token-list'),
    'key-list': of('key-list'),
  };
});
