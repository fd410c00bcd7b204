/*
 * The state of an opened channel, without sockets and clocks: pages of the list of interactions, and the events after
 * them, make what REST shows. A page says the sequence that it reflects, so no event is applied twice, and none is lost.
 */
import type { components } from './api.generated.ts';
import type { Channel, ChannelEvent, ChannelParticipant, Interaction, ReactionChange } from './events.ts';

type Summary = components['schemas']['ReactionSummary'];
type Reactor = components['schemas']['Reactor'];

/** A page of the list with `include_incomplete` and `include_reactors`, newest first. */
export interface Page {
  readonly items: readonly Interaction[];
  readonly meta: { readonly sequence: number; readonly has_next: boolean };
}

interface Entry {
  readonly interaction: Interaction;
  /** Sequence of the newest event that the interaction reflects. */
  readonly reflects: number;
}

export class Timeline {
  readonly #entries = new Map<number, Entry>();
  readonly #sequences = new Map<string, number>();
  /** Interactions from this sequence on are loaded. */
  #floor: number;
  #position: number;
  #channel: Channel;
  #channelReflects: number;
  /** Events of interactions that are not loaded, kept while these may still come. */
  #unplaced: ChannelEvent[] = [];
  /** Posts without data, which a later event deletes: the interactions come with that event. */
  readonly #blank = new Set<number>();
  #isLoadingOlder = false;

  /** @param channelReflects sequence of the newest event of the channel itself that `channel` reflects */
  constructor(page: Page, channel: Channel, channelReflects: number) {
    this.#channel = channel;
    this.#channelReflects = channelReflects;
    this.#position = page.meta.sequence;
    this.#floor = this.#add(page);
  }

  /** Sequence of the newest event. */
  get position(): number {
    return this.#position;
  }
  /** Whether there are older interactions than the loaded ones, and below which sequence. */
  get olderBefore(): number | null {
    return this.#floor > 0 ? this.#floor : null;
  }
  get channel(): Channel {
    return this.#channel;
  }
  /** The loaded interactions, oldest first. */
  interactions(): readonly Interaction[] {
    return [...this.#entries].sort(([a], [b]) => a - b).map(([, { interaction }]) => interaction);
  }

  /** From now on, events of older interactions are kept for the page that is requested next. */
  beginOlder(): void {
    this.#isLoadingOlder = true;
  }

  /** @param page the one below {@link olderBefore}, which reflects at least {@link position} of its request; null: failed */
  endOlder(page: Page | null, userId: string | null): void {
    this.#isLoadingOlder = false;
    if (page !== null) this.#floor = this.#add(page);
    this.#place(userId);
  }

  /** @returns the sequence from which on interactions are loaded now */
  #add({ items, meta }: Page): number {
    for (const interaction of items) this.#set(interaction, meta.sequence);
    return meta.has_next ? (items.at(-1)?.sequence ?? 0) : 0;
  }

  #set(interaction: Interaction, reflects: number): void {
    // Only updates of tool calls have no sequence, and they are not listed.
    if (interaction.sequence === null) return;
    this.#entries.set(interaction.sequence, { interaction, reflects });
    this.#sequences.set(interaction.id, interaction.sequence);
  }

  /** @param userId the reader; null for a service */
  apply(event: ChannelEvent, userId: string | null): void {
    this.#position = event.seq;
    if (event.type === 'interaction.posted' && event.data === null) this.#blank.add(event.seq);
    if (event.data === null) return;
    if (!this.#applied(event, userId)) this.#unplaced.push(event);
    if (this.#unplaced.length > 0) this.#place(userId);
  }

  /** Applies the events that wait for interactions that are loaded by now, and drops those that need not wait longer. */
  #place(userId: string | null): void {
    const waiting = this.#unplaced.filter((event) => !this.#applied(event, userId));
    this.#unplaced = this.#isLoadingOlder || this.#blank.size > 0 ? waiting : [];
  }

  /** @returns false if the interaction of the event is not loaded */
  #applied(event: ChannelEvent, userId: string | null): boolean {
    switch (event.type) {
      case 'channel.created':
      case 'channel.updated':
      case 'channel.archived':
      case 'participant.joined':
      case 'participant.left':
        this.#changeChannel(event);
        return true;
      case 'interaction.posted':
      case 'interaction.updated':
      case 'interaction.completed':
      case 'interaction.failed':
      case 'interaction.edited':
      case 'interaction.deleted':
        return event.data === null || this.#replace(event.data, event.seq);
      case 'reaction.added':
      case 'reaction.removed':
      case 'receipt.added':
      case 'mention_invite_prompt.dismissed': {
        const id = event.type === 'receipt.added' ? event.data?.message_event_id : event.data?.interaction_id;
        const entry = this.#entries.get(this.#sequences.get(id ?? '') ?? 0);
        if (entry === undefined) return false;
        if (entry.reflects < event.seq) this.#set(annotated(entry.interaction, event, userId), event.seq);
        return true;
      }
      default:
        return true;
    }
  }

  /** Frames have no annotations: those of the interaction stay. */
  #replace(interaction: Interaction, seq: number): boolean {
    const { sequence } = interaction;
    if (sequence === null) return true;
    const entry = this.#entries.get(sequence);
    if (entry === undefined && sequence < this.#floor) return false;
    this.#blank.delete(sequence);
    // A deleted interaction that comes late has none of the reactions since its post, which wait.
    if (entry === undefined) this.#set(interaction, sequence);
    else if (entry.reflects < seq) {
      const { reactions, agent_read_receipts, mention_invite_prompt_dismissed } = entry.interaction;
      this.#set({ ...interaction, reactions, agent_read_receipts, mention_invite_prompt_dismissed }, seq);
    }
    return true;
  }

  #changeChannel(event: Extract<ChannelEvent, { type: `channel.${string}` | `participant.${string}` }>): void {
    if (event.seq <= this.#channelReflects || event.data === null) return;
    this.#channelReflects = event.seq;
    if (event.type !== 'participant.joined' && event.type !== 'participant.left') {
      this.#channel = event.data;
      return;
    }
    const { participant_id: _id, ...participant } = event.data;
    const participants = [...this.#channel.participants];
    if (event.type === 'participant.joined') participants.push(participant as ChannelParticipant);
    else {
      const name = nameOf(participant as ChannelParticipant);
      const index = participants.findIndex((one) => nameOf(one) === name);
      if (index >= 0) participants.splice(index, 1);
    }
    this.#channel = { ...this.#channel, modified: event.at, participants };
  }
}

/** Some participants have no id. */
function nameOf(participant: ChannelParticipant): string {
  if ('chat_user_id' in participant) return participant.chat_user_id;
  return 'id' in participant ? participant.id : JSON.stringify(participant);
}

type Mark = Extract<ChannelEvent, { type: `reaction.${string}` | 'receipt.added' | 'mention_invite_prompt.dismissed' }>;

/** The interaction with a reaction more or less, a receipt more, or its prompt dismissed. */
function annotated(interaction: Interaction, event: Mark, userId: string | null): Interaction {
  if (event.data === null) return interaction;
  switch (event.type) {
    case 'receipt.added':
      return { ...interaction, agent_read_receipts: [...(interaction.agent_read_receipts ?? []), event.data] };
    case 'mention_invite_prompt.dismissed':
      return event.data.user_id === userId ? { ...interaction, mention_invite_prompt_dismissed: true } : interaction;
    case 'reaction.added':
    case 'reaction.removed': {
      const { emoji, reactor } = event.data;
      const others = reactionsOf(interaction).filter(
        (one) => one.emoji !== emoji || one.reactor.type !== reactor.type || one.reactor.id !== reactor.id,
      );
      if (event.type === 'reaction.added') {
        others.push({ ...event.data, reactor: { ...reactor, sequence: event.seq } });
      }
      return { ...interaction, reactions: summariesOf(others, userId) };
    }
  }
}

type Reaction = Omit<ReactionChange, 'reactor'> & { readonly reactor: Reactor };

function reactionsOf({ reactions }: Interaction): Reaction[] {
  return (reactions ?? [])
    .flatMap(({ reactors = [], ...summary }) => reactors.map((reactor) => ({ ...summary, reactor })))
    .sort((a, b) => a.reactor.sequence - b.reactor.sequence);
}

/** As the server computes them: emojis in the order of their first reactions. */
function summariesOf(reactions: readonly Reaction[], userId: string | null): Summary[] | null {
  const byEmoji = new Map<string, Reaction[]>();
  for (const one of reactions) byEmoji.set(one.emoji, [...(byEmoji.get(one.emoji) ?? []), one]);
  const summaries = [...byEmoji].map(([emoji, same]): Summary => {
    const reactors = same.map(({ reactor }) => reactor);
    const users = reactors.filter(({ type }) => type === 'user');
    const agents = reactors.filter(({ type }) => type === 'agent');
    const named = [...users.filter(({ id }) => id !== userId), ...agents.filter(({ id }) => id !== userId)];
    return {
      interaction_id: same[0]?.interaction_id ?? '',
      emoji,
      count: reactors.length,
      reacted_by_me: users.some(({ id }) => id === userId),
      target_role: same[0]?.target_role ?? 'user',
      reacted_by_agent: agents.length > 0,
      reactor_names: named.flatMap(({ name }) => (name ? [name] : [])),
      target_sender_id: same[0]?.target_sender_id ?? null,
      reactors,
    };
  });
  return summaries.length === 0 ? null : summaries;
}
