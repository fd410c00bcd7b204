import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelEvent, ChannelInteractions } from '#libs/features/channels/index.ts';
import { accept } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandRunner } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import {
  changed,
  decideAppend,
  decideComplete,
  decideEndings,
  decideFail,
  decidePost,
  decideUpdate,
} from './interaction.ts';
import type {
  ChangeEvent,
  Interaction,
  InteractionContext,
  InteractionEvent,
  InteractionPosted,
  InteractionRejection,
  InteractionTarget,
  Post,
  PostedEvent,
  StoredContent,
} from './interaction.ts';
import { placeOfInteraction } from './interaction.id.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { mayWriteAs } from './interaction.requests.ts';
import type { NewInteraction, RequestedPost, Writer } from './interaction.requests.ts';
import { interactionKeys } from './reads/interaction.keys.ts';
import { decodeSpan } from './reads/projection.ts';
import { ephemeralJson, interactionJson, postedJson } from './reads/resource.ts';
import type { ToolCallUpdates } from './tool-call-updates.ts';

/** Runs the commands of channels; interactions share their streams. */
export type InteractionRunner = CommandRunner<InteractionContext, ChannelEvent | InteractionEvent>;

/** An interaction after a command, as REST answers it; `revision` is that of its channel's stream. */
export type InteractionResult =
  | { readonly ok: true; readonly document: string | Buffer; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: InteractionRejection };

/** Port: an interaction as it is stored, incomplete ones too; null if there is none. */
export type StoredInteraction = (organizationId: EntityId, place: InteractionPlace) => Promise<Buffer | null>;

/**
 * The commands of interactions. All of them throw the faults of `CommandHandler.handle`. They look up older interactions
 * in the read model and so need Redis, except a post that names no other span and has no idempotency key.
 */
export class InteractionCommands {
  readonly #runner: InteractionRunner;
  readonly #updates: ToolCallUpdates;
  readonly #stored: StoredInteraction;

  constructor(
    runner: InteractionRunner,
    { updates, stored }: { readonly updates: ToolCallUpdates; readonly stored: StoredInteraction },
  ) {
    this.#runner = runner;
    this.#updates = updates;
    this.#stored = stored;
  }

  /** Posts an interaction, or keeps a tool-call update. */
  submit(context: CommandContext, channelId: EntityId, request: RequestedPost): Promise<InteractionResult> {
    const { interaction, spanIsNew, update } = request;
    return update === null
      ? this.post(context, channelId, interaction, { spanIsNew })
      : this.update(context, channelId, interaction, update);
  }

  /** @param spanIsNew the span's id was made for this command, so that no other interaction can have it */
  async post(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    { spanIsNew }: { readonly spanIsNew: boolean },
  ): Promise<InteractionResult> {
    const { organizationId } = context;
    // The span identifies a command that is sent again after its idempotency key was forgotten.
    const checksSpan = !spanIsNew || context.idempotencyKey !== undefined;
    const result = await this.#runPost(context, channelId, interaction, { checksSpan }, decidePost);
    if (!result.ok) {
      const isOwn = spanIsNew && result.rejection.reason === 'span_taken' && context.repeatedSinceMs === undefined;
      return isOwn ? this.post({ ...context, repeatedSinceMs: 0 }, channelId, interaction, { spanIsNew }) : result;
    }
    const event = result.events.find(isPosted);
    if (event === undefined) throw new TypeError('an accepted post has no event');
    return { ok: true, document: postedJson(event, { organizationId, channelId }), revision: result.revision };
  }

  /**
   * Keeps an update of a tool call if it could be posted as an interaction; it is not appended to the log. The answer is
   * the update that is kept: a newer one, if there is one.
   */
  async update(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    update: { readonly toolCallId: string; readonly sequence: number },
  ): Promise<InteractionResult> {
    const { organizationId, commandId } = context;
    let data: InteractionPosted | undefined;
    const result = await this.#runPost(context, channelId, interaction, { checksSpan: false }, (state, post) => {
      const decision = decideUpdate(state, post);
      if (!decision.ok) return decision;
      data = decision.interaction;
      return accept();
    });
    if (!result.ok) return result;
    if (data === undefined) throw new TypeError('an update was accepted without a decision');
    const id = `ephemeral-${derivedId(commandId, 'tool_call_update')}`;
    const shown = { ...data, createdAt: context.at, failure: null };
    const document = ephemeralJson(shown, { organizationId, channelId }, id);
    const kept = await this.#updates.put(organizationId, channelId, { ...update, document });
    return { ok: true, document: kept, revision: result.revision };
  }

  /** Looks up the parent's span, and the interaction's own if `checksSpan`, and decides. */
  #runPost(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    { checksSpan }: { readonly checksSpan: boolean },
    decide: (state: InteractionContext, post: Post) => ReturnType<typeof decidePost>,
  ) {
    const { organizationId } = context;
    const { spanId, parentSpanId } = interaction;
    const { spans } = interactionKeys(organizationId, channelId);
    const lookups = [spanId, parentSpanId].map((field) => (field === null ? null : { key: spans, field }));
    const [own = null, parent = null] = [checksSpan ? lookups[0] : null, lookups[1]];
    return this.#runner.handle(
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

  /** @param writer must be allowed to write as the sender, as for a post */
  append(
    context: CommandContext,
    place: InteractionPlace,
    content: StoredContent,
    writer: Writer,
  ): Promise<InteractionResult> {
    return this.#change(context, place, writer, (state, target) => decideAppend(state, target, content));
  }

  /** @param writer as for `append` */
  complete(
    context: CommandContext,
    place: InteractionPlace,
    content: StoredContent | null,
    writer: Writer,
  ): Promise<InteractionResult> {
    return this.#change(context, place, writer, (state, target) => decideComplete(state, target, content));
  }

  /** Checks no writer: every caller may fail an interaction, because the client that began it may have crashed. */
  fail(context: CommandContext, place: InteractionPlace, reason: string): Promise<InteractionResult> {
    return this.#change(context, place, 'operator', (state, target) => decideFail(state, target, reason));
  }

  async #change(
    context: CommandContext,
    place: InteractionPlace,
    writer: Writer,
    decide: (state: InteractionContext, target: InteractionTarget) => ReturnType<typeof decideFail>,
  ): Promise<InteractionResult> {
    const { channelId, sequence } = place;
    const { organizationId } = context;
    const stored = { key: interactionKeys(organizationId, channelId).documents, field: String(sequence) };
    let before: Interaction | null = null;
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found }) => {
        before = state.interactions.open[sequence] ?? null;
        const exists = found(stored) !== null;
        return decide(state, { organizationId, sequence, exists, isSender: (sender) => mayWriteAs(writer, sender) });
      },
      [stored],
    );
    if (!result.ok) return result;
    // A repeated command is not decided again: it is answered with the interaction as it is now.
    const after =
      before === null || result.isRepeated === true
        ? result.state.interactions.open[sequence]
        : result.events.filter(isChange).reduce<Interaction>(changed, before);
    const document = after
      ? interactionJson(after, { organizationId, channelId })
      : await this.#stored(organizationId, place);
    // The interaction exists, so Redis does not have it yet.
    if (document === null) throw storeUnavailable('redis');
    return { ok: true, document, revision: result.revision };
  }
}

/** The port through which the commands of a channel use its interactions. */
export function interactionsOfChannel(
  runner: InteractionRunner,
  store: Pick<EventStore, 'readStream'>,
): ChannelInteractions {
  return {
    async wasPosted(channelId, interactionId) {
      const place = placeOfInteraction(interactionId);
      if (place?.channelId !== channelId) return false;
      const from = streamRevision(place.sequence - 1);
      for await (const event of store.readStream(streamName(CHANNEL, channelId), { from, limit: 1 })) {
        return event.type === 'InteractionPosted.v1';
      }
      return false;
    },
    async archive(channelId, context, decide) {
      const result = await runner.handle(channelId, context, ({ channel, interactions }) => {
        const endings = decideEndings(interactions);
        const decision = decide(channel, endings.length > 0);
        if (!decision.ok || decision.events.length === 0) return decision;
        return accept<ChannelEvent | InteractionEvent>(...endings, ...decision.events);
      });
      if (!result.ok) return result;
      const events = result.events.filter((event) => event.type === 'ChannelArchived.v1');
      return { ...result, state: result.state.channel, events };
    },
  };
}

function isPosted(event: StreamEvent<ChannelEvent | InteractionEvent>): event is StreamEvent<PostedEvent> {
  return event.type === 'InteractionPosted.v1';
}

const CHANGES: ReadonlySet<string> = new Set<ChangeEvent['type']>([
  'InteractionContentAppended.v1',
  'InteractionCompleted.v1',
  'InteractionFailed.v1',
]);

function isChange(event: StreamEvent<ChannelEvent | InteractionEvent>): event is StreamEvent<ChangeEvent> {
  return CHANGES.has(event.type);
}
