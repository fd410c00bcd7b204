import { accept, type Decision, refuse } from '#libs/kernel/decider.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { NotFound } from '#libs/platform/entity/index.ts';

import {
  type Channel,
  type ChannelDecision,
  type ChannelEvent,
  type ChannelRejection,
  MAX_PINNED,
} from '../channel/channel.ts';
import { channelKeys } from '../channel.keys.ts';
import type { ChannelHandler } from '../stream.ts';
import type { InteractionResult } from './interaction.commands.ts';
import {
  type InteractionEvent,
  type InteractionPosted,
  isSuperseding,
  type StoredContent,
  type SupersedingInteraction,
} from './interaction.events.ts';
import type { InteractionRef } from './interaction.id.ts';
import {
  type ChannelStream,
  type InteractionRejection,
  type InteractionTarget,
  mayWriteAs,
  type Writer,
} from './interaction.ts';
import type { InteractionQueries } from './reads/queries.ts';
import { interactionOf, type StoredInteraction, supersededJson } from './reads/resource.ts';
import { isDeepStrictEqual } from 'node:util';

/**
 * The commands about complete messages. They look up the message in the read model and so need Redis, and throw the faults
 * of `CommandHandler.handle`.
 */
export class MessageCommands {
  readonly #handler: ChannelHandler;
  readonly #queries: Pick<InteractionQueries, 'interaction'>;

  constructor(handler: ChannelHandler, queries: Pick<InteractionQueries, 'interaction'>) {
    this.#handler = handler;
    this.#queries = queries;
  }

  /** Replaces the content of a complete message. @param writer must be allowed to write as the sender */
  edit(
    context: CommandContext,
    ref: InteractionRef,
    content: StoredContent,
    writer: Writer,
  ): Promise<InteractionResult> {
    return this.#supersede(context, ref, writer, (state, target) => decideEdit(state, target, content));
  }

  /** Deletes the content of a complete message. @param writer must be allowed to write as the sender */
  delete(context: CommandContext, ref: InteractionRef, writer: Writer): Promise<InteractionResult> {
    return this.#supersede(context, ref, writer, decideDelete);
  }

  async #supersede(
    context: CommandContext,
    ref: InteractionRef,
    writer: Writer,
    decide: (state: ChannelStream, target: StoredTarget) => ReturnType<typeof decideDelete>,
  ): Promise<InteractionResult> {
    const { channelId, sequence } = ref;
    const { organizationId } = context;
    const document = { key: channelKeys(organizationId, channelId).documents, field: String(sequence) };
    const isSender = (sender: InteractionPosted['participant']) => mayWriteAs(writer, sender);
    const result = await this.#handler.handle(
      channelId,
      context,
      (state, { found }) => {
        const json = found(document);
        return decide(state, {
          organizationId,
          sequence,
          stored: json === null ? null : interactionOf(json),
          isSender,
        });
      },
      [document],
    );
    if (!result.ok) return result;
    const event = result.isRepeated === true ? undefined : result.events.find(isSuperseding);
    const shown = { reader: null, includeIncomplete: true };
    const current =
      event === undefined
        ? await this.#queries.interaction(organizationId, ref, shown)
        : supersededJson(event, { organizationId, channelId });
    // The interaction exists, so Redis lacks it.
    if (current === null) throw storeUnavailable('Redis');
    return { ok: true, document: current, revision: result.revision };
  }

  /** Pins an interaction, or unpins it. Deleted ones cannot be pinned. */
  pin(context: CommandContext, { channelId, sequence }: InteractionRef, isPinned: boolean) {
    const { documents } = channelKeys(context.organizationId, channelId);
    const document = { key: documents, field: String(sequence) };
    return this.#handler.handle<ChannelRejection | NotFound>(
      channelId,
      context,
      ({ channel }, { found }) => {
        if (channel?.organizationId !== context.organizationId) return refuse({ reason: 'not_found' });
        const json = found(document);
        const exists = json !== null && interactionOf(json).deletedAt === undefined;
        return isPinned ? decidePin(channel, sequence, exists) : decideUnpin(channel, sequence);
      },
      [document],
    );
  }
}

/* Decisions about complete messages: their senders edit and delete them, and every participant pins them. */

/** A stored interaction that a command edits or deletes, with the results of its look-ups. */
interface StoredTarget extends Omit<InteractionTarget, 'exists'> {
  /** Null if the channel has no such interaction. */
  readonly stored: StoredInteraction | null;
}

function decideEdit(
  state: ChannelStream,
  target: StoredTarget,
  content: StoredContent,
): Decision<InteractionEvent, InteractionRejection> {
  const found = findStored(state, target);
  if (!found.ok) return found;
  if (found.isDeleted) return refuse({ reason: 'deleted' });
  const { interaction } = found;
  if (isDeepStrictEqual(interaction.content, content)) return accept();
  const data = { sequence: target.sequence, interaction: { ...interaction, content } };
  return accept({ type: 'InteractionEdited.v1', data });
}

/** The interaction keeps its place, sender and time. */
export function decideDelete(
  state: ChannelStream,
  target: StoredTarget,
): Decision<InteractionEvent | ChannelEvent, InteractionRejection> {
  const found = findStored(state, target);
  if (!found.ok) return found;
  if (found.isDeleted) return accept();
  const { sequence } = target;
  const interaction = { ...found.interaction, content: [], metadata: null, invocationConfig: null };
  const deleted: InteractionEvent = { type: 'InteractionDeleted.v1', data: { sequence, interaction } };
  const isPinned = state.channel?.pinned?.some((one) => one.sequence === sequence) === true;
  if (!isPinned) return accept(deleted);
  return accept<InteractionEvent | ChannelEvent>(deleted, { type: 'InteractionUnpinned.v1', data: { sequence } });
}

type FoundStored =
  | { readonly ok: true; readonly interaction: SupersedingInteraction; readonly isDeleted: boolean }
  | Extract<Decision<InteractionEvent, InteractionRejection>, { ok: false }>;

function findStored({ channel }: ChannelStream, target: StoredTarget): FoundStored {
  const { organizationId, stored, isSender } = target;
  if (channel === null || channel.organizationId !== organizationId || stored === null) {
    return refuse({ reason: 'not_found' });
  }
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const { sequence: _, complete, deletedAt, ...interaction } = stored;
  if (!isSender(interaction.participant)) return refuse({ reason: 'not_the_sender' });
  const { contentRole } = interaction;
  const isMessage = contentRole === 'user_message' || contentRole === 'agent_response';
  return complete && isMessage
    ? { ok: true, interaction, isDeleted: deletedAt !== undefined }
    : refuse({ reason: 'not_editable' });
}

/** @param exists whether the channel has such an interaction, which was not deleted */
function decidePin({ pinned = [], archivedAt }: Channel, sequence: number, exists: boolean): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  if (!exists) return refuse({ reason: 'interaction_not_found' });
  if (pinned.some((one) => one.sequence === sequence)) return accept();
  if (pinned.length >= MAX_PINNED) return refuse({ reason: 'too_many_pinned' });
  return accept({ type: 'InteractionPinned.v1', data: { sequence } });
}

function decideUnpin({ pinned = [], archivedAt }: Channel, sequence: number): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  const isPinned = pinned.some((one) => one.sequence === sequence);
  return isPinned ? accept({ type: 'InteractionUnpinned.v1', data: { sequence } }) : accept();
}
