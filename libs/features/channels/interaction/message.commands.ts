import { refuse } from '#libs/kernel/decider.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { NotFound } from '#libs/platform/entity/index.ts';

import type { ChannelRejection } from '../channel/channel.ts';
import { channelKeys } from '../channel.keys.ts';
import type { ChannelHandler } from '../stream.ts';
import type { InteractionResult } from './interaction.commands.ts';
import { type InteractionPosted, isSuperseding, type StoredContent } from './interaction.events.ts';
import type { InteractionRef } from './interaction.id.ts';
import { type ChannelStream, mayWriteAs, type Writer } from './interaction.ts';
import { decideDelete, decideEdit, decidePin, decideUnpin, type StoredTarget } from './message.ts';
import type { InteractionQueries } from './reads/queries.ts';
import { interactionOf, supersededJson } from './reads/resource.ts';

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
    if (current === null) throw storeUnavailable('redis');
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
