import type { ChannelEvent } from '#libs/features/channels/index.ts';
import { accept } from '#libs/kernel/decider.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandRunner } from '#libs/platform/commands/index.ts';

import { changed, decideAppend, decideComplete, decideFail, decidePost, decideUpdate } from './interaction.decider.ts';
import type {
  Interaction,
  InteractionContext,
  InteractionRejection,
  InteractionTarget,
  Post,
} from './interaction.decider.ts';
import type { InteractionEvent, InteractionPosted, StoredContent } from './interaction.events.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { mayWriteAs } from './interaction.senders.ts';
import type { Writer } from './interaction.senders.ts';
import { interactionKeys } from './interactions.keys.ts';
import { decodeSpan, ephemeralResource, interactionResource, postedJson } from './interactions.projection.ts';
import type { ToolCallUpdates } from './tool-call-updates.ts';

/** What runs the commands of channels; interactions see the channel, too. */
export type InteractionRunner = CommandRunner<InteractionContext, ChannelEvent | InteractionEvent>;

/** An interaction after a command, as REST answers it; `revision` is that of its channel's stream. */
export type InteractionResult =
  | { readonly ok: true; readonly document: string | Buffer; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: InteractionRejection };

/** Port: an interaction as it is stored, incomplete ones too; null if there is none. */
export type StoredInteraction = (organizationId: EntityId, place: InteractionPlace) => Promise<Buffer | null>;

/** An interaction to post; what names other spans is looked up here. */
export type NewInteraction = Omit<Post, 'organizationId' | 'parent' | 'spanTaken'>;

/**
 * The commands of interactions. All of them throw the faults of `CommandHandler.handle`. What they must know
 * of older interactions is looked up in the read model, so they need Redis, but for a post that names no
 * other span and has no idempotency key.
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

  /** @param spanIsNew the span's id was made for this command, so it cannot be taken */
  async post(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    { spanIsNew }: { readonly spanIsNew: boolean },
  ): Promise<InteractionResult> {
    const { organizationId } = context;
    const { spans } = interactionKeys(organizationId, channelId);
    const own = { key: spans, field: interaction.spanId };
    const parent = interaction.parentSpanId === null ? null : { key: spans, field: interaction.parentSpanId };
    // A command that is sent again, long after all else has forgotten it, is known by the span that it made.
    const looksForOwn = !spanIsNew || context.idempotencyKey !== undefined;
    const lookups = [...(looksForOwn ? [own] : []), ...(parent === null ? [] : [parent])];
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found }) => {
        const knownParent = parent === null ? null : found(parent);
        return decidePost(state, {
          ...interaction,
          organizationId,
          parent: knownParent === null ? null : decodeSpan(knownParent),
          spanTaken: looksForOwn && found(own) !== null,
        });
      },
      lookups,
    );
    if (!result.ok) {
      const isOwn = spanIsNew && result.rejection.reason === 'span_taken' && context.repeatedSinceMs === undefined;
      return isOwn ? this.post({ ...context, repeatedSinceMs: 0 }, channelId, interaction, { spanIsNew }) : result;
    }
    const event = result.events.find(isPosted);
    // An accepted command has posted; only a decider that is wrong could get here.
    if (event === undefined) throw new TypeError('a post was accepted and posted nothing');
    return { ok: true, document: postedJson(event, { organizationId, channelId }), revision: result.revision };
  }

  /**
   * Keeps an update of a tool call, if it could be posted as an interaction; the log never has it. The answer
   * is what is kept: a newer update, if there is one.
   */
  async update(
    context: CommandContext,
    channelId: EntityId,
    interaction: NewInteraction,
    update: { readonly toolCallId: string; readonly sequence: number },
  ): Promise<InteractionResult> {
    const { organizationId, commandId } = context;
    const { spans } = interactionKeys(organizationId, channelId);
    const parent = interaction.parentSpanId === null ? null : { key: spans, field: interaction.parentSpanId };
    let data: InteractionPosted | undefined;
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found }) => {
        const known = parent === null ? null : found(parent);
        const parentSpan = known === null ? null : decodeSpan(known);
        const decision = decideUpdate(state, { ...interaction, organizationId, parent: parentSpan, spanTaken: false });
        if (!decision.ok) return decision;
        data = decision.interaction;
        return accept();
      },
      parent === null ? [] : [parent],
    );
    if (!result.ok) return result;
    if (data === undefined) throw new TypeError('an update was accepted without a decision');
    const owner = { organizationId, channelId };
    const shown = { ...data, createdAt: context.at, failure: null };
    const id = `ephemeral-${derivedId(commandId, 'tool_call_update')}`;
    const document = JSON.stringify(ephemeralResource(shown, owner, id));
    const kept = await this.#updates.put(organizationId, channelId, { ...update, document });
    return { ok: true, document: kept, revision: result.revision };
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

  /** Names no writer: every caller may fail an interaction, because what began it may have crashed. */
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
    // A repeated command is not decided again: its answer is what has become of the interaction since.
    const after =
      before === null || result.isRepeated === true
        ? result.state.interactions.open[sequence]
        : afterEvents(before, result.events);
    const document =
      after === undefined ? await this.#stored(organizationId, place) : documentOf(after, organizationId, channelId);
    // The interaction exists, so Redis has not got it yet.
    if (document === null) throw storeUnavailable('redis');
    return { ok: true, document, revision: result.revision };
  }
}

function documentOf(interaction: Interaction, organizationId: EntityId, channelId: EntityId): string {
  return JSON.stringify(interactionResource(interaction, { organizationId, channelId }));
}

function afterEvents(
  before: Interaction,
  events: readonly StreamEvent<ChannelEvent | InteractionEvent>[],
): Interaction {
  return events.filter(isChange).reduce(changed, before);
}

type Posted = Extract<InteractionEvent, { type: 'InteractionPosted.v1' }>;
type Change = Exclude<InteractionEvent, Posted>;

function isPosted(event: StreamEvent<ChannelEvent | InteractionEvent>): event is StreamEvent<Posted> {
  return event.type === 'InteractionPosted.v1';
}

function isChange(event: StreamEvent<ChannelEvent | InteractionEvent>): event is StreamEvent<Change> {
  return (
    event.type === 'InteractionContentAppended.v1' ||
    event.type === 'InteractionCompleted.v1' ||
    event.type === 'InteractionFailed.v1'
  );
}
