/** Posts jobs through the same commands as HTTP. All ids are derived from the source, so a repetition adds nothing. */
import {
  type Channels,
  channelToCreate,
  type Directories,
  interactionId,
  interactionOf,
  interactionToPost,
  type PastPost,
  type PastPostResult,
} from '#libs/features/channels/index.ts';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { derivedId, type EntityId, newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { ChannelDraft, ImportJob, MessageDraft, Problem, ThreadDraft } from './import.model.ts';
import type { StoreRetry } from './store-retry.ts';

interface ImportParts extends Directories {
  readonly channels: Channels;
  readonly organizationId: EntityId;
}

/** The result of a job. */
export interface Posted {
  readonly imported: number;
  /** Messages that an earlier run had posted. */
  readonly already: number;
  readonly bad: readonly Problem[];
}

/** Namespace of the derived ids. */
const NAMESPACE = 'f1d3a6f0-6f57-5d0c-9d39-0b6f0c1a7a52';
/**
 * Messages of one append, and their JSON with the names of their senders in bytes. An append is limited to 1 MiB, with 1 KiB or
 * so beside each message.
 */
const WINDOW = 200;
const WINDOW_BYTES = 400_000;

export class ImportTarget {
  readonly #parts: ImportParts;
  readonly #retry: StoreRetry;
  readonly #known = new Set<EntityId>();
  /**
   * Whether the channel that was imported last was new. Then the next ones are expected to be new, too, and are read only
   * if the append shows that they exist.
   */
  #expectsNew = false;
  /** Sequences of the messages that threads are about, by channel and span. */
  readonly #origins = new Map<string, ChannelSequence>();

  /** @param retry repeats the commands. Channels and messages have derived ids, by which a repetition finds what was written */
  constructor(parts: ImportParts, retry: StoreRetry) {
    this.#parts = parts;
    this.#retry = retry;
  }

  channelId({ key }: ChannelDraft): EntityId {
    return this.#idOf(key);
  }

  #idOf(key: string): EntityId {
    return derivedId(NAMESPACE, `${this.#parts.organizationId}\n${key}`);
  }

  /** @throws `Fault` when the stores stay unavailable; the job may be posted again */
  async post({ channel, messages }: ImportJob): Promise<Posted> {
    const counts = { imported: 0, already: 0, bad: [] as Problem[] };
    if (channel === null) return counts;
    const channelId = this.channelId(channel);
    const refused = (reason: string): Posted => ({ ...counts, bad: [{ ...channel.place, reason }] });
    // A channel is created together with its first messages, which is one append instead of two.
    let created: NewChannel | null = null;
    if (!this.#known.has(channelId)) {
      if (messages.length > 0 && channel.thread === undefined) created = await this.#newChannel(channelId, channel);
      else {
        const refusal = await this.#create(channelId, channel);
        if (refusal !== null) return refused(refusal);
      }
    }
    for (const window of windowsOf(messages, channel.names)) {
      const { refusal, results } = await this.#postWindow(channelId, window, channel, created);
      if (refusal !== null) return refused(refusal);
      created = null;
      for (const [index, result] of results.entries()) {
        const message = window[index];
        if (message === undefined) continue;
        const isThere = result.ok || result.rejection.reason === 'span_taken';
        if (result.ok) counts.imported += 1;
        else if (isThere) counts.already += 1;
        else counts.bad.push({ ...message.place, reason: `refused: ${result.rejection.reason}` });
        const isWhole = message.startsThread !== true && (message.reactions ?? []).length === 0;
        if (isThere && !isWhole) counts.bad.push(...(await this.#complete(channelId, message, result)));
      }
    }
    return counts;
  }

  /** @returns the reason why the channel was refused, or null */
  async #create(channelId: EntityId, draft: ChannelDraft): Promise<string | null> {
    const { body, thread } = draft;
    const attempt = async (form: ChannelDraft['body']) => {
      const channel = await this.#newChannel(channelId, { ...draft, body: form });
      return this.#retry.run(() => this.#parts.channels.create(this.#context(channelId), channel));
    };
    let result = await attempt(thread === undefined ? body : { ...body, ...(await this.#threadOf(thread)) });
    // The file lacks the channel that the thread belongs to, or that channel was archived since.
    if (!result.ok && thread !== undefined) result = await attempt(body);
    return this.#refusalOf(channelId, result);
  }

  #newChannel(channelId: EntityId, { body, names }: Pick<ChannelDraft, 'body' | 'names'>): Promise<NewChannel> {
    return this.#retry.run(async () => {
      const participants = await Promise.all((body.participants ?? []).map((one) => this.#participant(one, names)));
      return channelToCreate(this.#context(channelId), { ...body, participants }, this.#parts);
    });
  }

  #refusalOf(channelId: EntityId, result: ChannelResult): string | null {
    if (!result.ok) return `refused: ${result.rejection.reason}`;
    if (result.entity.organizationId !== this.#parts.organizationId) return 'refused: not_found';
    // Bounded: a file of conversations names each channel once.
    if (this.#known.size >= 10_000) this.#known.clear();
    this.#known.add(channelId);
    return null;
  }

  async #threadOf({ parentKey, origin, metaData }: ThreadDraft): Promise<Partial<ChannelDraft['body']>> {
    const parentId = this.#idOf(parentKey);
    const sequence = origin && (await this.#sequenceOf(parentId, origin.spanId, origin.turnId));
    return {
      channel_type: 'thread',
      parent_channel_id: parentId,
      origin_message_id: sequence && interactionId({ channelId: parentId, sequence }),
      meta_data: metaData,
    };
  }

  /** Adds the reactions of a message that was posted, and notes the message if a thread is about it. */
  async #complete(channelId: EntityId, message: MessageDraft, result: PastPostResult): Promise<Problem[]> {
    const { key, place, body, reactions = [], startsThread } = message;
    const spanId = message.keepsIds ? key : derivedId(channelId, key);
    const sequence = result.ok
      ? result.sequence
      : await this.#sequenceOf(channelId, spanId, body.interaction_id ?? null);
    if (sequence === null) return [{ ...place, reason: 'its reactions are left out: the message was not found' }];
    // Read models may lag behind, so threads that follow find their message here.
    if (startsThread === true) this.#origins.set(`${channelId} ${spanId}`, sequence);
    const bad: Problem[] = [];
    for (const { emoji, reactor } of reactions) {
      const context = this.#context(derivedId(channelId, `react ${key} ${reactor.type} ${reactor.id} ${emoji}`));
      const added = await this.#retry.run(() =>
        this.#parts.channels.reactions.react(context, { channelId, sequence }, reactor, emoji),
      );
      if (!added.ok) bad.push({ ...place, reason: `a reaction is refused: ${added.rejection.reason}` });
    }
    return bad;
  }

  /** The sequence of an interaction, by its span and its turn. */
  async #sequenceOf(channelId: EntityId, spanId: string, turnId: string | null): Promise<ChannelSequence | null> {
    const noted = this.#origins.get(`${channelId} ${spanId}`);
    if (noted !== undefined) return noted;
    const { channels, organizationId } = this.#parts;
    const filter = {
      order: 'asc',
      includeIncomplete: true,
      includeToolCallUpdates: false,
      ...(turnId !== null && { turnId }),
    } as const;
    for (let after: string | null = null, more = true; more;) {
      const page: { size: number; offset: number; after: string | null } = { size: 200, offset: 0, after };
      const found: Awaited<ReturnType<Channels['queries']['list']>> = await this.#retry.run(() =>
        channels.queries.list(organizationId, channelId, filter, page, null),
      );
      const own = found?.items.find((json) => interactionOf(json).spanId === spanId);
      if (own !== undefined) return interactionOf(own).sequence;
      after = found?.last ?? null;
      more = found?.hasNext === true && after !== null;
    }
    return null;
  }

  /**
   * Posts in the order of the window. Replies whose parent is missing in the source are posted as roots.
   *
   * @param created the channel, if it is to be created first
   */
  async #postWindow(
    channelId: EntityId,
    window: readonly MessageDraft[],
    { names }: ChannelDraft,
    created: NewChannel | null,
  ): Promise<{ readonly refusal: string | null; readonly results: readonly PastPostResult[] }> {
    const { channels } = this.#parts;
    const context = this.#context(channelId);
    const posts = await this.#retry.run(() =>
      Promise.all(window.map((message) => this.#postOf(context, channelId, message, names))),
    );
    const [creation, results] = await this.#retry.run(() =>
      Promise.all([
        created && channels.create({ ...this.#context(newId()), isPast: true, isNew: this.#expectsNew }, created),
        channels.past.post(this.#context(newId()), channelId, posts),
      ]),
    );
    const refusal = creation && this.#refusalOf(channelId, creation);
    if (created !== null) this.#expectsNew = results.every(({ ok }) => ok);
    return refusal === null ? { refusal, results } : { refusal, results: [] };
  }

  async #postOf(
    context: CommandContext,
    channelId: EntityId,
    message: MessageDraft,
    names: ChannelDraft['names'],
  ): Promise<PastPost> {
    const { key, parentKey, keepsIds, startsTurn, body, parentMayBeMissing } = message;
    const spanOf = (name: string): string => (keepsIds ? name : derivedId(channelId, name));
    const spanId = spanOf(key);
    const participant = body.participant && (await this.#sender(body.participant, message.senderName, names));
    const named = {
      ...body,
      ...(participant && { participant }),
      span_id: spanId,
      ...(startsTurn && { interaction_id: spanId }),
      parent_span_id: parentKey === null ? null : spanOf(parentKey),
    };
    const { interaction } = await interactionToPost(context, named, {
      directories: this.#parts,
      writer: 'operator',
    });
    return { interaction, parentMayBeMissing };
  }

  /** Senders that are agents need not be registered: they keep their type, and get their name. */
  async #sender<T extends { readonly type: string }>(
    one: T,
    name: string | undefined,
    names: ChannelDraft['names'],
  ): Promise<T | Unknown> {
    if (one.type === 'agent' && 'agent_id' in one) {
      const metadata = 'agent_metadata' in one ? one.agent_metadata : null;
      const { organizationId, agents } = this.#parts;
      if (name === undefined || metadata || (await agents.find(organizationId, String(one.agent_id)))) return one;
      return { ...one, agent_metadata: { name } };
    }
    const own = 'user_id' in one && name !== undefined ? new Map([[String(one.user_id), name]]) : names;
    return this.#participant(one, own);
  }

  /** A user that the organization does not have becomes an unauthenticated user, such an agent an external one. */
  async #participant<T extends { readonly type: string }>(
    one: T,
    names: ChannelDraft['names'] = new Map(),
  ): Promise<T | Unknown> {
    const { organizationId, users, agents } = this.#parts;
    const named = (id: string) => (names.has(id) ? { name: names.get(id) ?? '' } : {});
    if (one.type === 'authenticated_user' && 'user_id' in one) {
      const userId = String(one.user_id);
      if ((await users.user(organizationId, userId)) !== null) return one;
      return { type: 'non_authenticated_user', user_metadata: { source_user_id: userId, ...named(userId) } };
    }
    // Senders that are agents have an `agent_id`, and need not be registered.
    if (one.type === 'agent' && 'id' in one) {
      const agentId = String(one.id);
      if ((await agents.find(organizationId, agentId))?.isActive === true) return one;
      return { type: 'external_agent', agent_metadata: { source_agent_id: agentId, ...named(agentId) } };
    }
    return one;
  }

  #context(commandId: EntityId): CommandContext {
    const { organizationId } = this.#parts;
    return { commandId, organizationId, actor: { type: 'system', id: 'import' }, at: systemClock.now() };
  }
}

type Unknown =
  | { readonly type: 'non_authenticated_user'; readonly user_metadata: Record<string, string> }
  | { readonly type: 'external_agent'; readonly agent_metadata: Record<string, string> };

type NewChannel = Parameters<Channels['create']>[1];
type ChannelResult = Awaited<ReturnType<Channels['create']>>;

/** Messages that are posted together, as one append. */
function* windowsOf(
  messages: readonly MessageDraft[],
  names: ChannelDraft['names'] = new Map(),
): Generator<readonly MessageDraft[]> {
  const longestName = Math.max(0, ...[...names.values()].map(bytesOf));
  let first = 0;
  let bytes = 0;
  for (const [index, message] of messages.entries()) {
    const own = message.bytes + (message.senderName === undefined ? longestName : bytesOf(message.senderName));
    bytes += own;
    if (index === first || (index - first < WINDOW && bytes <= WINDOW_BYTES)) continue;
    yield messages.slice(first, index);
    first = index;
    bytes = own;
  }
  if (first < messages.length) yield messages.slice(first);
}

function bytesOf(name: string): number {
  return Buffer.byteLength(JSON.stringify(name));
}
