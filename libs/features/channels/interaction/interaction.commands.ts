import { accept } from '#libs/kernel/decider.ts';
import { sequenceOf, type StreamEvent, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { OwnField } from '#libs/platform/http/index.ts';

import { channelKeys } from '../channel.keys.ts';
import { type ChannelHandler, type ChannelStreamEvent, isInteractionEvent } from '../stream.ts';

import {
  decideAppend,
  decideComplete,
  decideFail,
  decidePost,
  type ChannelStream,
  type InteractionRejection,
  type InteractionTarget,
  mayWriteAs,
  type Post,
  type Writer,
} from './interaction.ts';
import {
  type FinalDetails,
  interactionCodec,
  type InteractionPosted,
  isSuperseding,
  type StoredContent,
} from './interaction.events.ts';
import type { InteractionRef } from './interaction.id.ts';
import { changedOpen, type OpenInteraction } from './open-interaction.ts';
import { decodeSpan } from './reads/projection.ts';
import type { InteractionQueries } from './reads/queries.ts';
import { changedJson, ephemeralJson, openJson, postedJson, type Owner } from './reads/resource.ts';
import type { ToolCallUpdates } from './tool-call-updates.ts';

/** The span of a post that names none: a repeated command has the same one. */
export function spanOf(commandId: EntityId): string {
  return derivedId(commandId, 'span');
}

/** The entry of such a span in the read model. */
export function ownSpan({ organizationId, channelId }: Owner, commandId: EntityId): OwnField {
  const { revision, spans } = channelKeys(organizationId, channelId);
  return { revisionKey: revision, key: spans, field: spanOf(commandId) };
}

function callsEndedBy(content: StoredContent): readonly string[] {
  const ids = content.map((item) => (item.type === 'tool_call_result' ? Reflect.get(item, 'tool_call_id') : null));
  return ids.filter((id): id is string => typeof id === 'string');
}

/** An interaction to post, before the look-ups of its spans. */
type NewInteraction = Omit<Post, 'organizationId' | 'parent' | 'spanTaken'>;

export interface RequestedPost {
  readonly interaction: NewInteraction;
  /** Whether the span's id was generated for this command. */
  readonly spanIsNew: boolean;
  /** Set for a tool-call update, which is not appended to the log. */
  readonly update: { readonly toolCallId: string; readonly sequence: number } | null;
}

/** An interaction after a command, as the API returns it; `revision`: of the channel's stream. */
export type InteractionResult =
  | { readonly ok: true; readonly document: string | Buffer; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: InteractionRejection };

/** A posted interaction; a repeated command returns the interaction of its first run. */
export type PostResult =
  | (Extract<InteractionResult, { ok: true }> & {
      readonly ref: InteractionRef;
      readonly turnId: EntityId | null;
      readonly contentRole: InteractionPosted['contentRole'];
    })
  | Extract<InteractionResult, { ok: false }>;

/**
 * The commands of interactions. They throw the faults of `CommandHandler.handle`. They look up interactions in the read
 * model and so need Redis, except a post without a `spanId` and a `parentSpanId`.
 */
export class InteractionCommands {
  readonly #handler: ChannelHandler;
  readonly #queries: InteractionQueries;
  readonly #updates: ToolCallUpdates;

  constructor(
    handler: ChannelHandler,
    reads: { readonly queries: InteractionQueries; readonly updates: ToolCallUpdates },
  ) {
    this.#handler = handler;
    this.#queries = reads.queries;
    this.#updates = reads.updates;
  }

  /** Posts an interaction, or stores a tool-call update. */
  submit(context: CommandContext, channelId: EntityId, request: RequestedPost): Promise<InteractionResult> {
    const { interaction, spanIsNew, update } = request;
    return update === null
      ? this.post(context, channelId, interaction, { spanIsNew })
      : this.update(context, channelId, interaction, update);
  }

  /**
   * @param options `spanIsNew`: the span's id was generated for this command, so that no other interaction has it
   */
  async post(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    { spanIsNew }: { readonly spanIsNew: boolean },
  ): Promise<PostResult> {
    const { organizationId } = context;
    // The span identifies a repeated command whose idempotency key has expired. While Redis is away, the log identifies it.
    const { idempotencyKey, unknownSinceMs } = context;
    const checksSpan = !spanIsNew || (idempotencyKey !== undefined && unknownSinceMs === undefined);
    const checked = { checksSpan, absentAt: spanIsNew ? context.absentAt : undefined };
    // The results of calls are shown before the calls end.
    const returning = callsEndedBy(interaction.content).length > 0 ? { ...context, onAppended: undefined } : context;
    const result = await this.#runPost(returning, channelId, interaction, checked, decidePost);
    if (!result.ok) {
      const isOwn = spanIsNew && result.rejection.reason === 'span_taken' && context.repeatedSinceMs === undefined;
      return isOwn ? this.post({ ...context, repeatedSinceMs: 0 }, channelId, interaction, { spanIsNew }) : result;
    }
    const event = result.events.find((one) => one.type === 'InteractionPosted.v1');
    if (event === undefined) throw new TypeError('an accepted post has no event');
    const ref = { channelId, sequence: sequenceOf(event.revision) };
    const { turnId, contentRole } = event.data;
    const document = postedJson(event, { organizationId, channelId });
    await this.#endUpdates(organizationId, channelId, interaction.content);
    return { ok: true, document, revision: result.revision, ref, turnId, contentRole };
  }

  /** Ends what clients see of running calls that these are the results of. The results are in the log in any case. */
  async #endUpdates(organizationId: EntityId, channelId: EntityId, content: StoredContent): Promise<void> {
    const calls = callsEndedBy(content);
    if (calls.length === 0) return;
    try {
      await Promise.all(calls.map((id) => this.#updates.end(organizationId, channelId, id)));
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'store_unavailable') throw error;
    }
  }

  /**
   * Stores an update of a tool call if it could be posted as an interaction; it is not appended to the log. Returns the
   * stored update, which may be a newer one.
   */
  async update(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    update: { readonly toolCallId: string; readonly sequence: number },
  ): Promise<InteractionResult> {
    const { organizationId, commandId } = context;
    const posted: InteractionPosted[] = [];
    const result = await this.#runPost(context, channelId, interaction, { checksSpan: false }, (state, post) => {
      // Not stored, so it does not count as an incomplete interaction.
      const decision = decidePost(state, { ...post, complete: true });
      if (!decision.ok) return decision;
      posted.push(...decision.events.map((event) => interactionCodec.encode(event)));
      return accept();
    });
    const data = posted.at(-1);
    if (!result.ok) return result;
    if (data === undefined) throw new TypeError('an accepted update has no event');
    const id = `ephemeral-${derivedId(commandId, 'tool_call_update')}`;
    const shown = { ...data, complete: interaction.complete, createdAt: context.at, failure: null };
    const document = ephemeralJson(shown, { organizationId, channelId }, id);
    const kept = await this.#updates.put(organizationId, channelId, { ...update, document });
    return { ok: true, document: kept, revision: result.revision };
  }

  /** Looks up the parent's span, and with `checksSpan` the interaction's own, and decides. */
  #runPost(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    { checksSpan, absentAt }: { readonly checksSpan: boolean; readonly absentAt?: StreamRevision | undefined },
    decide: (state: ChannelStream, post: Post) => ReturnType<typeof decidePost>,
  ) {
    const { organizationId } = context;
    const { spanId, parentSpanId } = interaction;
    const { spans } = channelKeys(organizationId, channelId);
    const lookups = [spanId, parentSpanId].map((field) => (field === null ? null : { key: spans, field }));
    const [span = null, parent = null] = lookups;
    const own = checksSpan && span !== null ? { ...span, ...(absentAt !== undefined && { absentAt }) } : null;
    return this.#handler.handle(
      channelId,
      context,
      (state, { found }) => {
        const knownParent = parent && found(parent);
        return decide(state, {
          ...interaction,
          organizationId,
          parent: knownParent === null ? null : decodeSpan(knownParent),
          spanTaken: own !== null && found(own) !== null,
        });
      },
      [own, parent].filter((lookup) => lookup !== null),
    );
  }

  /** @param writer must be allowed to write as the sender */
  async append(
    context: CommandContext,
    ref: InteractionRef,
    content: StoredContent,
    writer: Writer,
  ): Promise<InteractionResult> {
    const result = await this.#change(context, ref, writer, (state, target) => decideAppend(state, target, content));
    if (result.ok) await this.#endUpdates(context.organizationId, ref.channelId, content);
    return result;
  }

  /** @param writer as for `append` */
  async complete(
    context: CommandContext,
    ref: InteractionRef,
    content: StoredContent | null,
    writer: Writer,
    details: FinalDetails = {},
  ): Promise<InteractionResult> {
    const decide = (state: ChannelStream, target: InteractionTarget) => decideComplete(state, target, content, details);
    const result = await this.#change(context, ref, writer, decide);
    if (result.ok) await this.#endUpdates(context.organizationId, ref.channelId, content ?? []);
    return result;
  }

  /**
   * The client that posted an interaction may have crashed, so every caller that sees the organization may fail it.
   *
   * @param writer as for `append`
   */
  fail(
    context: CommandContext,
    ref: InteractionRef,
    reason: string,
    writer: Writer = 'operator',
  ): Promise<InteractionResult> {
    return this.#change(context, ref, writer, (state, target) => decideFail(state, target, reason));
  }

  async #change(
    context: CommandContext,
    ref: InteractionRef,
    writer: Writer,
    decide: (state: ChannelStream, target: InteractionTarget) => ReturnType<typeof decideFail>,
  ): Promise<InteractionResult> {
    const { channelId, sequence } = ref;
    const { organizationId } = context;
    const listed = { key: channelKeys(organizationId, channelId).index('all'), score: sequence };
    let before: OpenInteraction | null = null;
    let wasOpen = false;
    const unlessOpen = ({ interactions }: ChannelStream) => {
      // An incomplete interaction exists, also if a command of the same batch completes it first.
      wasOpen = interactions.open[sequence] !== undefined;
      return wasOpen ? [] : [listed];
    };
    const result = await this.#handler.handle(
      channelId,
      context,
      (state, { counted }) => {
        before = state.interactions.open[sequence] ?? null;
        const exists = wasOpen || counted(listed) > 0;
        return decide(state, { organizationId, sequence, exists, isSender: (sender) => mayWriteAs(writer, sender) });
      },
      // The answers to clients have annotations of Redis: without it, their commands fail before anything is written.
      context.actor.type === 'system' ? unlessOpen : [listed],
    );
    if (!result.ok) return result;
    const owner = { organizationId, channelId };
    let document: string | Buffer | null;
    if (before === null || result.isRepeated === true) {
      // A repeated command is not decided again: it returns the current interaction.
      const current = result.state.interactions.open[sequence];
      document = current
        ? openJson(current, owner)
        : await this.#queries.interaction(organizationId, ref, { reader: null, includeIncomplete: true });
    } else document = documentAfter(result.events[0], before, owner);
    // The interaction exists, so Redis lacks it.
    if (document === null) throw storeUnavailable('Redis');
    return { ok: true, document, revision: result.revision };
  }
}

/** @param event that a command yielded; none if it had nothing to do */
function documentAfter(
  event: StreamEvent<ChannelStreamEvent> | undefined,
  before: OpenInteraction,
  owner: Owner,
): string {
  if (
    event === undefined ||
    !isInteractionEvent(event) ||
    event.type === 'InteractionPosted.v1' ||
    isSuperseding(event)
  ) {
    return openJson(before, owner);
  }
  return changedJson(changedOpen(before, event), event, owner);
}
