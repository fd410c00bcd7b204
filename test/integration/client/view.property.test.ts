/** An opened channel shows what REST shows, after random histories, with lost connections, older pages and remounts. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type ChannelSnapshot, type ChannelView, type Interaction, ParleyClient } from '#libs/client/src/index.ts';
import { type CutProxy, startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { Signer } from '#test/support/member-tokens.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';
import { rounds, roundsTimeoutMs } from '#test/support/rounds.ts';

type Rest = ParleyClient['rest'];
const USERS = ['ada', 'bob'] as const;
const who = fc.constantFrom(...USERS);
const target = fc.nat(7);
const emoji = fc.constantFrom('👍', '🎉');
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('post'), who, below: fc.option(target) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('react', 'unreact'), who, target, emoji }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('agent reacts', 'agent unreacts'), target, emoji }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('edit', 'delete', 'pin', 'unpin', 'receipt'), target }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('start', 'write', 'append', 'complete', 'fail') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('rename', 'add', 'add guest', 'remove') }) },
);
const shown = fc.record({ do: fc.constantFrom('cut', 'older', 'remount', 'send') });
type Step = { readonly do: string } & Partial<{
  who: 'ada' | 'bob';
  below: number | null;
  target: number;
  emoji: string;
}>;

const history = fc.record({
  before: fc.array(step, { maxLength: 15 }),
  writers: fc.array(fc.array(step, { minLength: 5, maxLength: 20 }), { minLength: 2, maxLength: 2 }),
  reader: fc.array(shown, { minLength: 2, maxLength: 8 }),
  size: fc.integer({ min: 1, max: 6 }),
});

describe('an opened channel', () => {
  let parley: ParleyHere;
  let proxy: CutProxy;
  let operator: Rest;
  const clients = new Map<string, ParleyClient>();
  const userIds = new Map<string, string>();

  beforeAll(async () => {
    const shop = await Signer.create();
    parley = await startParleyHere();
    proxy = await startCutProxy(parley.baseUrl);
    operator = new ParleyClient({ url: parley.baseUrl, apiKey: parley.apiKey }).rest;
    await operator.POST('/api/v1/token-issuers', { body: { ...shop.registration, keys: [{ ...shop.jwk }] } as never });
    for (const name of [...USERS, 'carol']) {
      const body = { external_id: name, issuer: shop.issuer, name };
      const { data } = await operator.POST('/api/v1/users', { body: body as never });
      userIds.set(name, data?.id ?? '');
      clients.set(name, new ParleyClient({ url: proxy.baseUrl, token: () => shop.token(name) }));
      clients.set(`${name} directly`, new ParleyClient({ url: parley.baseUrl, token: () => shop.token(name) }));
    }
  }, 60_000);
  afterAll(async () => {
    await proxy?.stop();
    await parley?.stop();
  });

  it('shows what REST shows', { timeout: roundsTimeoutMs(120_000) }, async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(history, async ({ before, writers, reader, size }) => {
        const stage = await Stage.create(operator, clients, userIds);
        await stage.play(before);
        const view = clients
          .get('ada')!
          .channel(stage.channelId)
          .open({ size, backoff: { maxMs: 50 } });
        const seen: ChannelSnapshot[] = [];
        let stop = view.subscribe(() => seen.push(frozen(view.getSnapshot())));
        const read = async (): Promise<void> => {
          for (const { do: what } of reader) {
            if (what === 'cut') proxy.cut();
            if (what === 'older') await view.older().catch(() => undefined);
            if (what === 'send') void view.send('interaction.post', said('from the view'));
            if (what === 'remount') {
              stop();
              stop = view.subscribe(() => seen.push(frozen(view.getSnapshot())));
            }
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        };
        await Promise.all([...writers.map((steps) => stage.play(steps)), read()]);
        await stage.shownBy(view);
        // Deltas have no sequence: the last one may come after the events that are shown.
        await eventually(() => expect(view.getSnapshot().drafts).toEqual(stage.drafts()));
        while (view.getSnapshot().hasOlder) await view.older();
        expect(view.getSnapshot().interactions).toEqual(await stage.interactions());
        compared += view.getSnapshot().interactions.length;
        for (const { interactions } of seen) expect(sequences(interactions)).toEqual(inOrder(interactions));
        stop();
        view.close();
      }),
      // A smaller history may need a race that does not come again.
      { numRuns: rounds(10), endOnFailure: true },
    );
    expect(compared).toBeGreaterThan(20);
  });
});

const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const sequences = (interactions: readonly Interaction[]) => interactions.map(({ sequence }) => Number(sequence));
const inOrder = (interactions: readonly Interaction[]) => [...new Set(sequences(interactions))].sort((a, b) => a - b);

/** A snapshot that fails when it is changed later. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) frozen(member);
  }
  return value;
}

/** A channel, its users, and what they have written. */
class Stage {
  readonly channelId: string;
  readonly #operator: Rest;
  readonly #clients: ReadonlyMap<string, ParleyClient>;
  readonly #userIds: ReadonlyMap<string, string>;
  readonly #posted: Interaction[] = [];
  /** Incomplete answers, and their texts. */
  readonly #open = new Map<string, string>();

  private constructor(channelId: string, parts: readonly [Rest, Map<string, ParleyClient>, Map<string, string>]) {
    this.channelId = channelId;
    [this.#operator, this.#clients, this.#userIds] = parts;
  }

  static async create(...parts: [Rest, Map<string, ParleyClient>, Map<string, string>]): Promise<Stage> {
    const [operator, , userIds] = parts;
    const participants = USERS.map((name) => ({ type: 'authenticated_user' as const, user_id: userIds.get(name)! }));
    const { data } = await operator.POST('/api/v1/channels', { body: { name: 'Random', participants } });
    return new Stage(data?.id ?? '', parts);
  }

  /** Some steps are refused, such as the edit of a message of another user. */
  async play(steps: readonly Step[]): Promise<void> {
    for (const one of steps) await this.#take(one);
  }

  drafts(): ReadonlyMap<string, string> {
    return new Map([...this.#open].filter(([, text]) => text !== ''));
  }

  /** As Ada reads them, oldest first. */
  async interactions(): Promise<readonly Interaction[]> {
    return (await this.#page()).items;
  }

  /** Resolves when the view shows the newest state; fails if that is not what REST shows. */
  async shownBy(view: ChannelView): Promise<void> {
    const path = { id: this.channelId };
    await eventually(
      async () => {
        expect(view.getSnapshot()).toMatchObject({ state: 'live', pending: [], me: this.#userIds.get('ada') });
        const { items } = await this.#page();
        const { interactions, channel, hasOlder } = view.getSnapshot();
        const [oldest = items[0]] = interactions;
        const from = hasOlder ? items.findIndex(({ id }) => id === oldest?.id) : 0;
        expect(interactions).toEqual(items.slice(from));
        expect(channel).toEqual((await this.#as('ada').GET('/api/v1/channels/{id}', { params: { path } })).data);
      },
      { timeoutMs: 20_000 },
    );
  }

  async #page() {
    const query = { size: 100, order: 'asc', include_incomplete: true, include_reactors: true } as const;
    const params = { path: { id: this.channelId }, query };
    const { data } = await this.#as('ada').GET('/api/v1/channels/{id}/interactions', { params });
    expect(data).toMatchObject({ meta: { has_next: false } });
    return data!;
  }

  #as(name: string): Rest {
    return this.#clients.get(`${name} directly`)!.rest;
  }

  async #take({ do: what, who: name = 'ada', below, target: index = 0, emoji: sign = '👍' }: Step): Promise<void> {
    const path = { id: this.channelId };
    // One of the newest.
    const aim = this.#posted.at(-1 - index) ?? this.#posted[0];
    const { id: interaction_id = 'none' } = aim ?? {};
    const params = { path: { interaction_id } };
    const marked = { path: { interaction_id, emoji: sign } };
    const agent_id = '01a1ff85-0000-7000-8000-000000000000';
    const operator = this.#operator;
    switch (what) {
      case 'post': {
        const parent = below == null ? undefined : this.#posted.at(-1 - below);
        const body = { ...said(`by ${name}`), ...(parent?.span_id && { parent_span_id: parent.span_id }) };
        const { data } = await this.#as(name).POST('/api/v1/channels/{id}/interactions', { params: { path }, body });
        return void (data && this.#posted.push(data));
      }
      case 'react':
        return void (await this.#as(name).PUT('/api/v1/interactions/{interaction_id}/reactions/{emoji}', {
          params: marked,
        }));
      case 'unreact':
        return void (await this.#as(name).DELETE('/api/v1/interactions/{interaction_id}/reactions/{emoji}', {
          params: marked,
        }));
      case 'agent reacts': {
        const body = { agent_id, agent_name: 'Echo' };
        return void (await operator.PUT('/api/v1/interactions/{interaction_id}/reactions/{emoji}', {
          params: marked,
          body,
        }));
      }
      case 'agent unreacts': {
        const query = { agent_id };
        return void (await operator.DELETE('/api/v1/interactions/{interaction_id}/reactions/{emoji}', {
          params: { ...marked, query },
        }));
      }
      case 'edit':
        return void (await this.#as(name).PATCH('/api/v1/interactions/{interaction_id}', {
          params,
          body: said('edited'),
        }));
      case 'delete':
        return void (await this.#as(name).DELETE('/api/v1/interactions/{interaction_id}', { params }));
      case 'pin':
        return void (await this.#as(name).PUT('/api/v1/interactions/{interaction_id}/pin', { params }));
      case 'unpin':
        return void (await this.#as(name).DELETE('/api/v1/interactions/{interaction_id}/pin', { params }));
      case 'receipt':
        return void (await operator.POST('/api/v1/interactions/{interaction_id}/read_receipts', {
          params,
          body: { agent_id },
        }));
      case 'rename':
        return void (await operator.PATCH('/api/v1/channels/{id}', {
          params: { path },
          body: { name: `${Math.random()}` },
        }));
      case 'add':
        return this.#addParticipant({ type: 'authenticated_user', user_id: this.#userIds.get('carol')! });
      case 'add guest':
        return this.#addParticipant({ type: 'external_agent' });
      case 'remove':
        return this.#removeParticipant();
      default:
        return this.#answer(what);
    }
  }

  async #addParticipant(body: object): Promise<void> {
    const params = { path: { id: this.channelId } };
    await this.#operator.POST('/api/v1/channels/{id}/participants', { params, body: body as never });
  }

  /** The newest one that is neither Ada nor Bob. */
  async #removeParticipant(): Promise<void> {
    const path = { id: this.channelId };
    const { data } = await this.#operator.GET('/api/v1/channels/{id}/participants', { params: { path } });
    const participant_id = data?.items.slice(USERS.length).at(-1)?.participant_id;
    if (participant_id === undefined) return;
    const params = { path: { ...path, participant_id } };
    await this.#operator.DELETE('/api/v1/channels/{id}/participants/{participant_id}', { params });
  }

  async #answer(what: string): Promise<void> {
    const [id = ''] = [...this.#open.keys()].slice(-1);
    const params = { path: { interaction_id: id } };
    const operator = this.#operator;
    if (what === 'start') {
      const body = {
        content: [] as [],
        content_role: 'agent_response',
        complete: false,
        participant: { type: 'external_agent' },
      } as const;
      const { data } = await operator.POST('/api/v1/channels/{id}/interactions', {
        params: { path: { id: this.channelId } },
        body,
      });
      if (data) this.#open.set(data.id, '');
      if (data) this.#posted.push(data);
    } else if (id === '') return;
    else if (what === 'write') {
      const offset = (this.#open.get(id) ?? '').length;
      const { data } = await operator.POST('/api/v1/interactions/{interaction_id}/deltas', {
        params,
        body: { offset, text: 'word ' },
      });
      if (data && this.#open.has(id)) this.#open.set(id, `${this.#open.get(id)}word `);
    } else if (what === 'append') {
      await operator.POST('/api/v1/interactions/{interaction_id}/content', { params, body: said('kept') });
    } else {
      this.#open.delete(id);
      if (what === 'complete')
        await operator.POST('/api/v1/interactions/{interaction_id}/complete', { params, body: said('whole') });
      else await operator.POST('/api/v1/interactions/{interaction_id}/fail', { params, body: { reason: 'why not' } });
    }
  }
}
