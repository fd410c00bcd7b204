/** A channel as a page opens it: connections, messages of its own, ends, and what users of comparable clients report. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import {
  type ChannelSnapshot,
  type ChannelView,
  type ClientOptions,
  ParleyClient,
  SubscriptionError,
  type WebSocketConstructor,
} from '#libs/client/src/index.ts';
import { type CutProxy, startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { Signer } from '#test/support/member-tokens.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';

/** Sockets of the clients under test. */
const sockets: WebSocket[] = [];
class CountedSocket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols);
    sockets.push(this);
  }
}
const openSockets = () => sockets.filter(({ readyState }) => readyState <= WebSocket.OPEN).length;
const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });

describe('an opened channel', { timeout: 120_000 }, () => {
  let parley: ParleyHere;
  let proxy: CutProxy;
  let shop: Signer;
  let adaId: string;
  let channelId: string;
  let views: ChannelView[] = [];

  beforeAll(async () => {
    shop = await Signer.create();
    parley = await startParleyHere();
    proxy = await startCutProxy(parley.baseUrl);
    await call('POST', 'token-issuers', shop.registration);
    adaId = (await call('POST', 'users', { external_id: 'ada', issuer: shop.issuer, name: 'Ada' })).id;
  }, 60_000);
  beforeEach(async () => {
    const participants = [{ type: 'authenticated_user', user_id: adaId }];
    channelId = (await call('POST', 'channels', { name: 'Shown', participants })).id;
    sockets.length = 0;
  });
  afterEach(() => {
    for (const view of views) view.close();
    views = [];
  });
  afterAll(async () => {
    await proxy?.stop();
    await parley?.stop();
  });

  async function call(method: string, path: string, body?: object): Promise<{ id: string; sequence: number }> {
    const reply = await parley.api.request(method, `/api/v1/${path}`, body && { body });
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.text === '' ? { id: '', sequence: 0 } : (reply.json() as { id: string; sequence: number });
  }
  const post = (text: string, more: object = {}) =>
    call('POST', `channels/${channelId}/interactions`, { ...said(text), ...more });
  function open(options: Partial<ClientOptions> = {}, size?: number): ChannelView {
    const WebSocket = CountedSocket as unknown as WebSocketConstructor;
    const client = new ParleyClient({ url: proxy.baseUrl, WebSocket, token: () => shop.token('ada'), ...options });
    const view = client.channel(channelId).open({ size, backoff: { maxMs: 100 } });
    views.push(view);
    return view;
  }
  const texts = ({ interactions }: ChannelSnapshot) =>
    interactions.map(({ content: [item] }) => (item?.type === 'text' ? item.text : ''));
  const live = (view: ChannelView) => eventually(() => expect(view.getSnapshot().state).toBe('live'));
  const shows = (view: ChannelView, expected: string[]) =>
    eventually(() => expect(texts(view.getSnapshot())).toEqual(expected));

  it('is live after its newest page, and loads older ones once, however often they are asked for', async () => {
    for (const text of ['one', 'two', 'three', 'four']) await post(text);
    const view = open({}, 2);
    expect(view.getSnapshot()).toMatchObject({ state: 'connecting', channel: null, interactions: [], hasOlder: false });
    view.subscribe(() => undefined);
    await shows(view, ['three', 'four']);
    await live(view);
    expect(view.getSnapshot()).toMatchObject({ channel: { name: 'Shown' }, me: adaId, hasOlder: true });
    await post('five');
    await Promise.all([view.older(), view.older()]);
    await shows(view, ['one', 'two', 'three', 'four', 'five']);
    expect(view.getSnapshot().hasOlder).toBe(false);
    await view.older();
  });

  it('stops asking a server that lags for older ones when it is closed', async () => {
    for (const text of ['one', 'two', 'three']) await post(text);
    let asked = 0;
    const lagging = async (input: string | Request | URL): Promise<Response> => {
      const request = new Request(input);
      const response = await fetch(request);
      if (!request.url.includes('before_sequence')) return response;
      asked += 1;
      const page = (await response.json()) as { meta: object };
      return Response.json({ ...page, meta: { ...page.meta, sequence: 1 } });
    };
    const view = open({ fetch: lagging }, 2);
    view.subscribe(() => undefined);
    await live(view);
    const older = view.older();
    await eventually(() => expect(asked).toBeGreaterThan(2));
    view.close();
    await older;
    expect(texts(view.getSnapshot())).toEqual(['two', 'three']);
  });

  it('is the same snapshot until something changes, and then shares what did not', async () => {
    await post('one');
    const view = open();
    view.subscribe(() => undefined);
    await live(view);
    const first = view.getSnapshot();
    expect(view.getSnapshot()).toBe(first);
    await post('two');
    await shows(view, ['one', 'two']);
    expect(view.getSnapshot().interactions[0]).toBe(first.interactions[0]);
    expect(texts(first)).toEqual(['one']);
  });

  it('is written token by token, and then replaced', async () => {
    const view = open();
    const drafts: (string | undefined)[] = [];
    view.subscribe(() => drafts.push([...view.getSnapshot().drafts.values()][0]));
    await live(view);
    const participant = { type: 'external_agent' };
    const { id } = await post('', { content: [], content_role: 'agent_response', complete: false, participant });
    for (const [offset, text] of ['Good ', 'mor', 'ning'].entries()) {
      await call('POST', `interactions/${id}/deltas`, { offset: [0, 5, 8][offset], text });
    }
    await eventually(() => expect(view.getSnapshot().drafts).toEqual(new Map([[id, 'Good morning']])));
    const before = view.getSnapshot();
    await call('POST', `interactions/${id}/complete`, said('Good morning.'));
    await shows(view, ['Good morning.']);
    expect(view.getSnapshot().drafts.size).toBe(0);
    expect(before.drafts.size).toBe(1);
    expect(drafts).toContain('Good mor');
  });

  it('shows typing until it ends', async () => {
    const view = open();
    view.subscribe(() => undefined);
    await live(view);
    const key = `typing:${adaId}`;
    const tab = open();
    tab.subscribe(() => undefined);
    await live(tab);
    await tab.send('typing');
    await eventually(() => expect(view.getSnapshot().values.get(key)).toMatchObject({ typing: true }));
    await tab.send('interaction.post', said('typed'));
    await shows(view, ['typed']);
    await eventually(() => expect(view.getSnapshot().values.size).toBe(0));
  });

  describe('keeps one connection', () => {
    it("while it has listeners, in React's strict mode too", async () => {
      const view = open();
      view.subscribe(() => undefined)();
      const stop = view.subscribe(() => undefined);
      const stopOther = view.subscribe(() => undefined);
      await live(view);
      stop();
      await post('one');
      await shows(view, ['one']);
      expect(sockets).toHaveLength(1);
      stopOther();
      await eventually(() => expect(openSockets()).toBe(0));
    });

    it('and none if its listener leaves while the page or the ticket is fetched', async () => {
      for (const calls of [1, 2, 3]) {
        const requests: Promise<unknown>[] = [];
        let stop: () => void = () => undefined;
        const view = open({
          fetch: (request) => {
            const response = fetch(request);
            if (requests.push(response) === calls) stop();
            return response;
          },
        });
        stop = view.subscribe(() => undefined);
        await eventually(() => expect(requests).toHaveLength(calls));
        await Promise.allSettled(requests);
        await new Promise((resolve) => setImmediate(resolve));
        expect(openSockets()).toBe(0);
      }
    });

    it('and resumes where it was, with what has happened since', async () => {
      await post('one');
      const view = open();
      const stop = view.subscribe(() => undefined);
      await live(view);
      stop();
      await eventually(() => expect(openSockets()).toBe(0));
      await post('two');
      expect(texts(view.getSnapshot())).toEqual(['one']);
      view.subscribe(() => undefined);
      await shows(view, ['one', 'two']);
    });

    it('and shows a replay when it has ended, not event by event', async () => {
      const view = open();
      const stop = view.subscribe(() => undefined);
      await live(view);
      stop();
      await eventually(() => expect(openSockets()).toBe(0));
      for (let count = 0; count < 20; count += 1) await post(`${count}`);
      const lengths = new Set<number>();
      view.subscribe(() => lengths.add(view.getSnapshot().interactions.length));
      await eventually(() => expect(view.getSnapshot().interactions).toHaveLength(20));
      expect([...lengths]).toEqual([0, 20]);
    });
  });

  describe('shows a message of its own', () => {
    it('at once, and never twice, also while connections are cut', async () => {
      const view = open();
      const seen: string[][] = [];
      view.subscribe(() => {
        const { pending, interactions } = view.getSnapshot();
        seen.push([
          ...interactions.map(({ span_id: span }) => span ?? ''),
          ...pending.map(({ span_id: span }) => span),
        ]);
      });
      const answers = ['one', 'two', 'three'].map((text) => view.send('interaction.post', said(text)));
      expect(view.getSnapshot().pending.map(({ content }) => content)).toEqual(
        ['one', 'two', 'three'].map((text) => said(text).content),
      );
      await Promise.all(answers);
      const more = ['four', 'five'].map((text) => view.send('interaction.post', said(text)));
      proxy.cut();
      await Promise.all(more);
      await shows(view, ['one', 'two', 'three', 'four', 'five']);
      await eventually(() => expect(view.getSnapshot().pending).toEqual([]));
      for (const spans of seen) expect(new Set(spans).size).toBe(spans.length);
      // From the first on, it never disappears again.
      const counts = seen.map(({ length }) => length);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    });

    it('that is sent although its page was left', async () => {
      const view = open();
      const stop = view.subscribe(() => undefined);
      const sent = view.send('interaction.post', said('and gone'));
      stop();
      await expect(sent).resolves.toMatchObject({ seq: 2 });
      await eventually(() => expect(openSockets()).toBe(0));
    });

    it('no longer, when it is refused', async () => {
      const view = open();
      view.subscribe(() => undefined);
      const refused = view.send('interaction.post', { ...said('x'), content_role: 'agent_response' });
      await expect(refused).rejects.toMatchObject({ name: 'CommandError', code: 'not_for_members' });
      expect(view.getSnapshot().pending).toEqual([]);
    });

    it('once, when the same command is sent again', async () => {
      const view = open();
      view.subscribe(() => undefined);
      const id = crypto.randomUUID();
      await view.send('interaction.post', said('once'), id);
      await view.send('interaction.post', said('once'), id);
      await shows(view, ['once']);
      expect(view.getSnapshot().pending).toEqual([]);
    });
  });

  it('continues with another token when its token has expired', async () => {
    let asked = 0;
    const token = () => {
      asked += 1;
      const now = Math.floor(Date.now() / 1_000);
      // The server allows clocks to differ by a minute: it is valid for three seconds, enough to connect on a busy machine.
      return shop.token('ada', asked === 1 ? { iat: now - 600, exp: now - 56 } : {});
    };
    const view = open({ token });
    const states: string[] = [];
    view.subscribe(() => states.push(view.getSnapshot().state));
    await live(view);
    await eventually(() => expect(asked).toBe(2));
    await live(view);
    await post('later');
    await shows(view, ['later']);
    expect(states).not.toContain('closed');
    expect(openSockets()).toBe(1);
  });

  it('waits while the server or the source of tokens is away, and then shows the channel', async () => {
    let fails = 3;
    const token = async () => {
      fails -= 1;
      if (fails >= 0) throw new Error('no network');
      return shop.token('ada');
    };
    const view = open({ token });
    view.subscribe(() => undefined);
    const sent = view.send('interaction.post', said('early'));
    await eventually(() => expect(view.getSnapshot().state).toBe('waiting'));
    await sent;
    await shows(view, ['early']);
  });

  it('is closed when its user is removed, and shows nothing that comes later', async () => {
    const { data } = await participants();
    const view = open();
    view.subscribe(() => undefined);
    await live(view);
    await call('DELETE', `channels/${channelId}/participants/${data[0]}`);
    await eventually(() => expect(view.getSnapshot().state).toBe('closed'));
    const { error, interactions } = view.getSnapshot();
    expect(error).toBeInstanceOf(SubscriptionError);
    expect(error).toMatchObject({ code: 'access_lost', closeCode: 4503 });
    await post('secret');
    await expect(view.older()).resolves.toBeUndefined();
    await expect(view.send('interaction.post', said('x'))).rejects.toMatchObject({ code: 'not_acknowledged' });
    expect(view.getSnapshot().interactions).toBe(interactions);
    const again = open();
    again.subscribe(() => undefined);
    await eventually(() => expect(again.getSnapshot().state).toBe('closed'));
    expect(again.getSnapshot().error).toMatchObject({ code: 'access_lost', cause: { status: 404 } });
  });

  async function participants(): Promise<{ data: string[] }> {
    const reply = await parley.api.get(`/api/v1/channels/${channelId}/participants`);
    const { items } = reply.json() as { items: { participant_id: string }[] };
    return { data: items.map(({ participant_id: id }) => id) };
  }

  it('stays readable after the channel was archived', async () => {
    for (const text of ['one', 'two', 'three']) await post(text);
    const view = open({}, 2);
    view.subscribe(() => undefined);
    await live(view);
    await call('POST', `channels/${channelId}/archive`);
    await eventually(() => expect(view.getSnapshot().error).toMatchObject({ code: 'channel_gone' }));
    await view.older();
    expect(texts(view.getSnapshot())).toEqual(['one', 'two', 'three']);
  });
});
