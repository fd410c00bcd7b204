/** The client against a running Parley: what a subscription delivers, whatever happens to its connections. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  type ChannelEvent,
  type ChannelSubscription,
  ParleyClient,
  type SubscribeOptions,
  SubscriptionError,
  type TicketSource,
} from '#libs/client/src/index.ts';
import { type CutProxy, startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';

const oneTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

describe('a subscription', { timeout: 120_000 }, () => {
  let parley: ParleyProcess;
  let proxy: CutProxy;
  /** Through the proxy. */
  let client: ParleyClient;
  let rest: ParleyClient['rest'];

  beforeAll(async () => {
    parley = await startParleyProcess();
    proxy = await startCutProxy(parley.baseUrl);
    client = new ParleyClient({ url: proxy.baseUrl, apiKey: parley.apiKey });
    ({ rest } = new ParleyClient({ url: parley.baseUrl, apiKey: parley.apiKey }));
  }, 60_000);
  afterAll(async () => {
    await proxy?.stop();
    await parley?.stop();
  });

  async function createChannel(): Promise<string> {
    const { data } = await rest.POST('/api/v1/channels', { body: { name: 'Followed' } });
    return data?.id ?? '';
  }
  async function post(channel: string, ...texts: string[]): Promise<void> {
    for (const text of texts) {
      const body = { content: [{ type: 'text', text }] };
      expect((await parley.api.post(`/api/v1/channels/${channel}/interactions`, body)).status).toBe(200);
    }
  }
  const quick: SubscribeOptions = { backoff: { maxMs: 200 } };
  const subscribe = (channel: string, options: SubscribeOptions = {}): ChannelSubscription =>
    client.channel(channel).subscribe({ after: 0, ...quick, ...options });
  const live = (subscription: ChannelSubscription) =>
    eventually(() => expect(subscription.state.state).toBe('live'), { timeoutMs: 30_000 });

  /** Reads events up to that sequence, and leaves. */
  async function upTo(subscription: ChannelSubscription, last: number): Promise<ChannelEvent[]> {
    const events: ChannelEvent[] = [];
    for await (const event of subscription) {
      events.push(event);
      if (event.seq >= last) break;
    }
    return events;
  }
  /** The error with which a subscription ends by itself. */
  async function endOf(subscription: ChannelSubscription): Promise<unknown> {
    try {
      for await (const _event of subscription);
      return null;
    } catch (error) {
      return error;
    }
  }

  it('delivers documents as REST shows them', async () => {
    const channel = await createChannel();
    await post(channel, 'Hello');
    const [created, posted] = await upTo(subscribe(channel), 2);
    expect(created).toMatchObject({ seq: 1, type: 'channel.created' });
    expect(created?.data).toEqual((await parley.api.get(`/api/v1/channels/${channel}`)).json());
    const id = posted?.type === 'interaction.posted' ? posted.data?.id : undefined;
    expect(posted?.data).toEqual((await parley.api.get(`/api/v1/interactions/${id}`)).json());
  });

  it('without a cursor delivers new events, from the first connection on', async () => {
    const channel = await createChannel();
    await post(channel, 'old');
    const subscription = client.channel(channel).subscribe(quick);
    await live(subscription);
    expect(subscription.cursor).toBe(2);
    await post(channel, 'new');
    expect((await upTo(subscription, 3)).map(({ seq }) => seq)).toEqual([3]);
  });

  it('delivers each event once, in order, however often its connections are cut', async () => {
    const channel = await createChannel();
    const subscription = subscribe(channel);
    const seen: number[] = [];
    let cut = 0;
    subscription.on('event', ({ seq }) => {
      seen.push(seq);
      // In the middle of other frames.
      if (seq % 40 === 0) cut += proxy.cut();
    });
    await Promise.all([0, 1, 2, 3].map(async () => post(channel, ...oneTo(50).map(String))));
    await eventually(() => expect(seen).toHaveLength(201), { timeoutMs: 60_000 });
    expect(seen).toEqual(oneTo(201));
    expect(cut).toBeGreaterThan(2);
    subscription.close();
    expect(subscription.state).toEqual({ state: 'closed', error: null });
  });

  it('buffers little for a slow reader, and still delivers everything', async () => {
    const channel = await createChannel();
    await post(channel, ...oneTo(60).map(String));
    const subscription = subscribe(channel, { queue: { events: 10 } });
    const states: string[] = [];
    subscription.on('state', ({ state }) => states.push(state));
    await eventually(() => expect(subscription.state.state).toBe('paused'));
    const seen: number[] = [];
    for await (const { seq } of subscription) {
      seen.push(seq);
      expect(subscription.cursor).toBe(seq);
      if (seq === 30) await eventually(() => subscription.state.state === 'paused');
      if (seq === 61) break;
    }
    expect(seen).toEqual(oneTo(61));
    expect(states.filter((state) => state === 'paused').length).toBeGreaterThan(2);
  });

  it('assembles the text of an answer while it is written, also for a late subscriber', async () => {
    const channel = await createChannel();
    const early = subscribe(channel);
    await live(early);
    const { data: answer } = await rest.POST('/api/v1/channels/{id}/interactions', {
      params: { path: { id: channel } },
      body: { content: [], content_role: 'agent_response', complete: false, participant: { type: 'external_agent' } },
    });
    const id = answer?.id ?? '';
    const write = async (offset: number, text: string): Promise<void> => {
      const { response } = await rest.POST('/api/v1/interactions/{interaction_id}/deltas', {
        params: { path: { interaction_id: id } },
        body: { offset, text },
      });
      expect(response.status).toBe(200);
    };
    await write(0, 'Once ');
    const late = subscribe(channel);
    await live(late);
    await write(5, '🦜 upon');
    for (const one of [early, late]) await eventually(() => expect(one.drafts.get(id)).toBe('Once 🦜 upon'));
    proxy.cut();
    await write(12, ' a time');
    for (const one of [early, late]) await eventually(() => expect(one.drafts.get(id)).toBe('Once 🦜 upon a time'));
    await rest.POST('/api/v1/interactions/{interaction_id}/complete', {
      params: { path: { interaction_id: id } },
      body: { content: [{ type: 'text', text: 'Once 🦜 upon a time' }] },
    });
    for (const one of [early, late]) {
      await eventually(() => expect(one.drafts.size).toBe(0));
      one.close();
    }
  });

  it('runs each command once, however often its connections are cut', async () => {
    const channel = await createChannel();
    const subscription = subscribe(channel);
    const texts = oneTo(30).map((number) => `command ${number}`);
    const answers = texts.map((text) =>
      subscription.send('interaction.post', { content: [{ type: 'text', text }] }).then((answer) => {
        if (answer.seq !== null && answer.seq % 5 === 0) proxy.cut();
        return answer.seq;
      }),
    );
    const seqs = await Promise.all(answers);
    expect([...seqs].sort((a, b) => Number(a) - Number(b))).toEqual(oneTo(31).slice(1));
    const posted = (await upTo(subscription, 31)).flatMap((event) =>
      event.type === 'interaction.posted' && event.data !== null ? event.data.content : [],
    );
    expect(posted.map((item) => (item.type === 'text' ? item.text : '')).sort()).toEqual(texts.toSorted());
  });

  it('continues when Parley stops properly and starts again, with the commands in progress', async () => {
    const channel = await createChannel();
    const subscription = subscribe(channel);
    const reasons: string[] = [];
    subscription.on('state', (state) => {
      if (state.state === 'waiting') reasons.push(state.reason);
    });
    await live(subscription);
    const answers = oneTo(20).map((number) =>
      subscription.send('interaction.post', { content: [{ type: 'text', text: `${number}` }] }),
    );
    process.kill(parley.pid, 'SIGTERM');
    await eventually(() => !parley.alive());
    await parley.start();
    const seqs = (await Promise.all(answers)).map(({ seq }) => Number(seq));
    expect(seqs.sort((a, b) => a - b)).toEqual(oneTo(21).slice(1));
    expect((await upTo(subscription, 21)).map(({ seq }) => seq)).toEqual(oneTo(21));
    expect(reasons[0]).toContain('ended with 1012');
  });

  it('sends while the loop that sends takes no events, and behind a full queue', async () => {
    const channel = await createChannel();
    await post(channel, ...oneTo(60).map(String));
    const subscription = subscribe(channel, { queue: { events: 10 } });
    await eventually(() => expect(subscription.state.state).toBe('paused'));
    const seen: number[] = [];
    const acknowledged: number[] = [];
    for await (const { seq } of subscription) {
      seen.push(seq);
      if (seq % 10 === 0 && acknowledged.length < 6) {
        const { seq: at } = await subscription.send('interaction.post', { content: [{ type: 'text', text: 'again' }] });
        acknowledged.push(Number(at));
      }
      if (seq === 67) break;
    }
    expect(seen).toEqual(oneTo(67));
    expect(acknowledged).toEqual([62, 63, 64, 65, 66, 67]);
  });

  it('gives drafts to a program that takes no events, beyond the limit of its queue', async () => {
    const channel = await createChannel();
    await post(channel, ...oneTo(20).map(String));
    const subscription = subscribe(channel, { queue: { events: 10 } });
    await eventually(() => expect(subscription.state.state).toBe('paused'));
    const drafts: string[] = [];
    subscription.on('draft', ({ text }) => drafts.push(text));
    const { data: answer } = await rest.POST('/api/v1/channels/{id}/interactions', {
      params: { path: { id: channel } },
      body: { content: [], content_role: 'agent_response', complete: false, participant: { type: 'external_agent' } },
    });
    const params = { path: { interaction_id: answer?.id ?? '' } };
    await rest.POST('/api/v1/interactions/{interaction_id}/deltas', { params, body: { offset: 0, text: 'Once' } });
    await eventually(() => expect(drafts.at(-1)).toBe('Once'), { timeoutMs: 30_000 });
    expect(subscription.state.state).toBe('paused');
    expect((await upTo(subscription, 22)).map(({ seq }) => seq)).toEqual(oneTo(22));
  });

  it('rejects a command that is not answered in time, and serves many subscriptions by one signal', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const stop = new AbortController();
    const never = new ParleyClient({ url: proxy.baseUrl, tickets: () => new Promise(() => undefined) });
    const waiting = oneTo(20).map(() => never.channel('any').subscribe({ signal: stop.signal, answerWithinMs: 100 }));
    const refused = waiting[0]?.send('run.cancel', { run_id: 'r' });
    await expect(refused).rejects.toMatchObject({ code: 'timeout', message: /was not sent within 0.1 s$/ });
    stop.abort();
    await eventually(() => waiting.every(({ state }) => state.state === 'closed'));
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it('tries again after everything that is not a refusal of Parley', async () => {
    const channel = await createChannel();
    const page = (status: number, headers: Record<string, string> = {}) =>
      new Response('<html>Not here</html>', { status, headers: { 'content-type': 'text/html', ...headers } });
    const answers = [
      page(404),
      page(403),
      page(401),
      new Response(null, { status: 204 }),
      new Response('', { status: 200 }),
      page(200),
      page(429, { 'retry-after': '3600' }),
      page(503, { 'retry-after': '99999999999' }),
      Response.json({ detail: 'later' }, { status: 503 }),
      Response.json({ message: 'Missing Authentication Token' }, { status: 403 }),
      Response.json({}),
      Response.json({ value: 7 }),
    ];
    const states: string[] = [];
    const throughProxies: typeof fetch = async (input, init) => answers.shift() ?? fetch(input, init);
    const url = parley.baseUrl;
    const careless = new ParleyClient({ url, apiKey: parley.apiKey, fetch: throughProxies }).channel(channel);
    const subscription = careless.subscribe({ after: 0, backoff: { firstMs: 5, maxMs: 20 } });
    subscription.on('state', (state) => states.push(state.state === 'waiting' ? state.reason : state.state));
    await live(subscription);
    expect(states.filter((state) => state.startsWith('no ticket: '))).toHaveLength(12);
    subscription.close();
    // A backend's answer, as the page of a careless developer passes it on.
    const replies: unknown[] = [{ error: 'busy' }, undefined, null, '', { value: '' }];
    const tickets: TicketSource = async () => {
      if (replies.length > 0) return replies.shift() as never;
      return (await parley.api.post(`/api/v1/channels/${channel}/websocket_ticket`)).json() as { value: string };
    };
    const passed = new ParleyClient({ url, tickets }).channel(channel).subscribe({ backoff: { maxMs: 20 } });
    await live(passed);
    passed.close();
  });

  it('connects anew at once when it is asked to, and when its network has changed', async () => {
    const subscription = subscribe(await createChannel(), { backoff: { firstMs: 3_600_000, maxMs: 3_600_000 } });
    await live(subscription);
    const states: string[] = [];
    subscription.on('state', ({ state }) => states.push(state));
    subscription.reconnect();
    await eventually(() => expect(states.at(-1)).toBe('live'));
    proxy.cut();
    await eventually(() => expect(states.at(-1)).toBe('waiting'));
    subscription.reconnect();
    await eventually(() => expect(states.at(-1)).toBe('live'));
    subscription.close();
  });

  it('rejects a command that the server refuses, with its reasons', async () => {
    const subscription = subscribe(await createChannel());
    const refused = subscription.send('reaction.add', { interaction_id: 'nothing', emoji: 'no emoji' });
    await expect(refused).rejects.toMatchObject({ name: 'CommandError' });
    subscription.close();
    await expect(subscription.send('typing')).rejects.toMatchObject({ code: 'not_acknowledged' });
  });

  it('shows the others that a user is typing', async () => {
    const channel = await createChannel();
    const [one, other] = [subscribe(channel), subscribe(channel)];
    const keys: string[] = [];
    other.on('ephemeral', ({ key }) => keys.push(key));
    await Promise.all([live(one), live(other)]);
    await one.send('typing');
    await eventually(() => expect(keys).toEqual([expect.stringMatching(/^typing:/)]));
    one.close();
    other.close();
  });

  describe('ends for good', () => {
    it('after the last event of an archived channel', async () => {
      const channel = await createChannel();
      const subscription = subscribe(channel);
      const seen: string[] = [];
      subscription.on('event', ({ type }) => seen.push(type));
      const end = endOf(subscription);
      expect((await parley.api.post(`/api/v1/channels/${channel}/archive`)).status).toBe(200);
      expect(await end).toMatchObject({ code: 'channel_gone', closeCode: 4504 });
      expect(seen).toEqual(['channel.created', 'channel.archived']);
    });

    it('when its key is revoked', async () => {
      const channel = await createChannel();
      const { data: key } = await rest.POST('/api/v1/keys', {
        body: { name: 'short-lived', scopes: ['read'], access: 'organization' },
      });
      const other = new ParleyClient({ url: proxy.baseUrl, apiKey: key?.key ?? '' });
      const subscription = other.channel(channel).subscribe({ after: 0, ...quick });
      await live(subscription);
      await rest.POST('/api/v1/keys/{id}/revoke', { params: { path: { id: key?.id ?? '' } } });
      expect(await endOf(subscription)).toMatchObject({ name: 'SubscriptionError', code: 'access_lost' });
    });

    it('where the channel is missing, or has not reached the cursor', async () => {
      const nowhere = await endOf(subscribe('nowhere'));
      expect(nowhere).toMatchObject({ code: 'access_lost', cause: { status: 404 } });
      expect(nowhere).toBeInstanceOf(SubscriptionError);
      const ahead = await endOf(subscribe(await createChannel(), { after: 1_000 }));
      expect(ahead).toMatchObject({ code: 'protocol_error', closeCode: 4500 });
    });

    it('when a fresh ticket is refused, while a used one is replaced', async () => {
      const channel = await createChannel();
      const fresh = async (): Promise<{ value: string }> =>
        (await parley.api.post(`/api/v1/channels/${channel}/websocket_ticket`)).json() as { value: string };
      const used = await fresh();
      const first = new ParleyClient({ url: proxy.baseUrl, tickets: async () => used }).channel(channel);
      const subscription = first.subscribe({ after: 0 });
      await live(subscription);
      const given: string[] = [];
      const tickets: TicketSource = async () => {
        const ticket = given.length === 0 ? used : await fresh();
        given.push(ticket.value);
        return ticket;
      };
      const second = new ParleyClient({ url: proxy.baseUrl, tickets }).channel(channel).subscribe({ after: 0 });
      await live(second);
      expect(given).toHaveLength(2);
      second.close();
      proxy.cut();
      expect(await endOf(subscription)).toMatchObject({ code: 'ticket_refused', closeCode: 1008 });
    });

    it('when it is aborted, and its loop ends without an error', async () => {
      const stop = new AbortController();
      const subscription = subscribe(await createChannel(), { signal: stop.signal });
      subscription.on('caughtUp', () => stop.abort());
      expect(await endOf(subscription)).toBeNull();
      expect(await endOf(subscribe('nowhere', { signal: AbortSignal.abort() }))).toBeNull();
    });
  });
});
