import fc from 'fast-check';
import { expect, it } from 'vitest';

import type { ChannelEvent, Interaction } from './events.ts';
import { type Page, Timeline } from './timeline.ts';

const ME = 'ada';
const REACTORS = [
  { type: 'user', id: ME, name: 'Ada' },
  { type: 'user', id: 'bob', name: 'Sam' },
  { type: 'user', id: 'eve', name: 'Sam' },
  { type: 'agent', id: 'echo', name: null },
] as const;

const target = fc.nat(4);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('post', 'start') }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('toggle', 'toggle', 'end', 'edit', 'delete', 'delete', 'receipt', 'dismiss'),
      target,
      by: fc.constantFrom(...REACTORS),
      emoji: fc.constantFrom('👍', '🎉'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('deliver'), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('request', 'answer'), lag: fc.nat(6) }) },
);
type Step = { readonly do: string } & Partial<{
  target: number;
  by: (typeof REACTORS)[number];
  emoji: string;
  count: number;
  lag: number;
}>;

it('shows the interactions as they are, however events and older pages come', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 15, size: 'max' }),
      fc.array(step, { maxLength: 30, size: 'max' }),
      (before, after) => {
        const server = new Server();
        for (const one of before) server.take(one);
        const reader = new Reader(server, 2);
        for (const one of after) if (!server.take(one)) reader.take(one);
        reader.take({ do: 'deliver', count: Infinity });
        for (let rest = 20; rest > 0 && reader.timeline.olderBefore !== null; rest -= 1) {
          // The first answers the request that is still open.
          reader.take({ do: 'request' });
          reader.take({ do: 'answer' });
        }
        expect(reader.timeline.interactions()).toEqual(server.interactions(server.head));
      },
    ),
    { numRuns: 4_000 },
  );
});

type Change =
  | { readonly what: 'posted'; readonly complete: boolean }
  | { readonly what: 'completed' | 'edited' | 'deleted'; readonly sequence: number }
  | { readonly what: 'reacted' | 'withdrew'; readonly sequence: number; readonly emoji: string; readonly by: Reactor }
  | { readonly what: 'receipt'; readonly sequence: number }
  | { readonly what: 'dismissed'; readonly sequence: number; readonly by: Reactor };
type Reactor = (typeof REACTORS)[number];

/** The log of a channel, what REST shows of it at any sequence, and its frames. */
class Server {
  readonly #log: Change[] = [];

  get head(): number {
    return this.#log.length;
  }

  /** @returns false for a step that is not one of the server's */
  take({ do: what, target: index = 0, by = REACTORS[0], emoji = '👍' }: Step): boolean {
    if (['deliver', 'request', 'answer'].includes(what)) return false;
    if (what === 'post' || what === 'start') this.#log.push({ what: 'posted', complete: what === 'post' });
    const now = this.interactions(this.head);
    const aim = now.at(-1 - index);
    const sequence = Number(aim?.sequence);
    if (aim === undefined) return true;
    const isOpen = !aim.complete;
    if (what === 'end' && isOpen) this.#log.push({ what: 'completed', sequence });
    if (what === 'edit' && !isOpen && !aim.deleted_at) this.#log.push({ what: 'edited', sequence });
    if (what === 'delete' && !isOpen && !aim.deleted_at) this.#log.push({ what: 'deleted', sequence });
    if (what === 'receipt') this.#log.push({ what: 'receipt', sequence });
    if (what === 'dismiss') this.#log.push({ what: 'dismissed', sequence, by });
    if (what === 'toggle') {
      const of = aim.reactions?.find((one) => one.emoji === emoji)?.reactors ?? [];
      const isOn = of.some(({ id }) => id === by.id);
      this.#log.push({ what: isOn ? 'withdrew' : 'reacted', sequence, emoji, by });
    }
    return true;
  }

  interactions(end: number): Interaction[] {
    const log = this.#log.slice(0, end);
    return log.flatMap((change, index) => (change.what === 'posted' ? [this.#interaction(index + 1, log)] : []));
  }

  page(end: number, before: number | null, size: number): Page {
    const below = this.interactions(end).filter(({ sequence }) => before === null || Number(sequence) < before);
    const items = below.toReversed().slice(0, size);
    return { items, meta: { sequence: end, has_next: below.length > size } };
  }

  #interaction(sequence: number, log: readonly Change[]): Interaction {
    const own = log.flatMap((change, index) =>
      'sequence' in change && change.sequence === sequence ? [{ change, seq: index + 1 }] : [],
    );
    const receipts = own.filter(({ change }) => change.what === 'receipt');
    const isDismissed = own.some(({ change }) => change.what === 'dismissed' && change.by.id === ME);
    return {
      ...this.#resource(sequence, log.length),
      reactions: summaries(sequence, own),
      agent_read_receipts: receipts.length === 0 ? null : receipts.map(({ seq }) => receipt(sequence, seq)),
      mention_invite_prompt_dismissed: isDismissed,
    };
  }

  /** Without annotations, as frames have it. */
  #resource(sequence: number, end: number): Interaction {
    const own = this.#log.slice(0, end).filter((change) => 'sequence' in change && change.sequence === sequence);
    const has = (what: string) => own.some((change) => change.what === what);
    const post = this.#log[sequence - 1];
    const text = has('deleted') ? 'gone' : `edited ${own.filter(({ what }) => what === 'edited').length} times`;
    const interaction = {
      id: `i${sequence}`,
      sequence,
      complete: (post?.what === 'posted' && post.complete) || has('completed'),
      content: [{ type: 'text', text }],
      reactions: null,
      agent_read_receipts: null,
      mention_invite_prompt_dismissed: false,
      ...(has('deleted') && { deleted_at: 'then' }),
    };
    return interaction as unknown as Interaction;
  }

  /** The frame of an event as it is sent now: nothing shows what was deleted since. */
  frame(seq: number): ChannelEvent {
    const change = this.#log[seq - 1]!;
    const envelope = { seq, at: 'then', actor: null };
    const sequence = 'sequence' in change ? change.sequence : seq;
    const interaction_id = `i${sequence}`;
    switch (change.what) {
      case 'posted':
      case 'completed':
      case 'edited':
      case 'deleted': {
        const isErased = change.what !== 'deleted' && this.#isDeleted(sequence);
        const data = isErased ? null : this.#resource(sequence, seq);
        return { ...envelope, type: `interaction.${change.what}`, data } as ChannelEvent;
      }
      case 'reacted':
      case 'withdrew': {
        const type = change.what === 'reacted' ? 'reaction.added' : 'reaction.removed';
        const data = { interaction_id, emoji: change.emoji, reactor: change.by, ...TARGET };
        return { ...envelope, type, data };
      }
      case 'receipt':
        return { ...envelope, type: 'receipt.added', data: receipt(sequence, seq) };
      case 'dismissed':
        return {
          ...envelope,
          type: 'mention_invite_prompt.dismissed',
          data: { interaction_id, user_id: change.by.id },
        };
    }
  }

  #isDeleted(sequence: number): boolean {
    return this.#log.some((change) => change.what === 'deleted' && change.sequence === sequence);
  }
}

const TARGET = { target_role: 'user', target_sender_id: null } as const;

function receipt(sequence: number, seq: number) {
  return { id: `r${seq}`, message_event_id: `i${sequence}`, interaction_id: 'turn', agent_id: 'echo', read_at: 'then' };
}

function summaries(sequence: number, own: readonly { change: Change; seq: number }[]): Interaction['reactions'] {
  let current: { emoji: string; by: Reactor; seq: number }[] = [];
  for (const { change, seq } of own) {
    if (change.what !== 'reacted' && change.what !== 'withdrew') continue;
    const { emoji, by } = change;
    current = current.filter((one) => one.emoji !== emoji || one.by.id !== by.id);
    if (change.what === 'reacted') current.push({ emoji, by, seq });
  }
  const emojis = [...new Set(current.map(({ emoji }) => emoji))];
  const shown = emojis.map((emoji) => {
    const same = current.filter((one) => one.emoji === emoji);
    const ofType = (type: string) => same.filter(({ by }) => by.type === type && by.id !== ME);
    return {
      interaction_id: `i${sequence}`,
      emoji,
      count: same.length,
      reacted_by_me: same.some(({ by }) => by.id === ME),
      reacted_by_agent: ofType('agent').length > 0,
      reactor_names: [...ofType('user'), ...ofType('agent')].flatMap(({ by: { name } }) => name ?? []),
      reactors: same.map(({ by, seq }) => ({ ...by, sequence: seq })),
      ...TARGET,
    };
  });
  return shown.length === 0 ? null : shown;
}

/** Delivers the events of a server, and its pages. */
class Reader {
  readonly timeline: Timeline;
  readonly #server: Server;
  readonly #size: number;
  #request: { readonly before: number; readonly position: number } | null = null;

  constructor(server: Server, size: number) {
    this.#server = server;
    this.#size = size;
    this.timeline = new Timeline(server.page(server.head, null, size), { participants: [] } as never, 0);
  }

  take({ do: what, count = 0, lag = 0 }: Step): void {
    const { timeline } = this;
    if (what === 'deliver') {
      const end = Math.min(this.#server.head, timeline.position + count);
      while (timeline.position < end) timeline.apply(this.#server.frame(timeline.position + 1), ME);
    }
    if (what === 'request' && timeline.olderBefore !== null && this.#request === null) {
      this.#request = { before: timeline.olderBefore, position: timeline.position };
      timeline.beginOlder();
    }
    if (what === 'answer' && this.#request !== null) {
      const { before, position } = this.#request;
      // Read at any time since the request.
      const end = Math.max(position, this.#server.head - lag);
      timeline.endOlder(this.#server.page(end, before, this.#size), ME);
      this.#request = null;
    }
  }
}
