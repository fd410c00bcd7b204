import type { ChannelEvent } from '#libs/features/channels/index.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandResult, CommandRunner } from '#libs/platform/commands/index.ts';

import { changed, decideAppend, decideComplete, decideFail, decidePost, posted } from './interaction.decider.ts';
import type {
  Interaction,
  InteractionContext,
  InteractionRejection,
  InteractionTarget,
  Post,
} from './interaction.decider.ts';
import type { InteractionEvent, StoredContent } from './interaction.events.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { interactionKeys } from './interactions.keys.ts';
import { decodeSpan } from './interactions.projection.ts';

/** What runs the commands of channels; interactions see the channel, too. */
export type InteractionRunner = CommandRunner<InteractionContext, ChannelEvent | InteractionEvent>;

/** An interaction after a command; `revision` is that of its channel's stream. */
export type InteractionResult =
  | { readonly ok: true; readonly interaction: Interaction; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: InteractionRejection };

/** An interaction to post; what names other spans is looked up here. */
export type NewInteraction = Omit<Post, 'organizationId' | 'parent' | 'spanTaken'>;

/**
 * The commands of interactions. All of them throw the faults of `CommandHandler.handle`. What they must know
 * of older interactions is looked up in the read model, so they need Redis, but for a post that names no
 * other span.
 */
export class InteractionCommands {
  readonly #runner: InteractionRunner;

  constructor(runner: InteractionRunner) {
    this.#runner = runner;
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
    const lookups = [...(spanIsNew ? [] : [own]), ...(parent === null ? [] : [parent])];
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found }) => {
        const knownParent = parent === null ? null : found(parent);
        return decidePost(state, {
          ...interaction,
          organizationId,
          parent: knownParent === null ? null : decodeSpan(knownParent),
          spanTaken: !spanIsNew && found(own) !== null,
        });
      },
      lookups,
    );
    return resultOf(result, null);
  }

  append(context: CommandContext, place: InteractionPlace, content: StoredContent): Promise<InteractionResult> {
    return this.#change(context, place, (state, target) => decideAppend(state, target, content));
  }

  complete(
    context: CommandContext,
    place: InteractionPlace,
    content: StoredContent | null,
  ): Promise<InteractionResult> {
    return this.#change(context, place, (state, target) => decideComplete(state, target, content));
  }

  fail(context: CommandContext, place: InteractionPlace, reason: string): Promise<InteractionResult> {
    return this.#change(context, place, (state, target) => decideFail(state, target, reason));
  }

  async #change(
    context: CommandContext,
    { channelId, sequence }: InteractionPlace,
    decide: (state: InteractionContext, target: InteractionTarget) => ReturnType<typeof decideFail>,
  ): Promise<InteractionResult> {
    const { organizationId } = context;
    const document = { key: interactionKeys(organizationId, channelId).documents, field: String(sequence) };
    let before: Interaction | null = null;
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found }) => {
        before = state.interactions.open[sequence] ?? null;
        return decide(state, { organizationId, sequence, exists: found(document) !== null });
      },
      [document],
    );
    return resultOf(result, before);
  }
}

/** The interaction that a command has posted, or what its events have made of the one `before`. */
function resultOf(
  result: CommandResult<InteractionContext, ChannelEvent | InteractionEvent, InteractionRejection>,
  before: Interaction | null,
): InteractionResult {
  if (!result.ok) return result;
  let interaction = before;
  for (const event of result.events) {
    if (isPosted(event)) interaction = posted(event);
    else if (isChange(event) && interaction !== null) interaction = changed(interaction, event);
  }
  // An accepted command was about an interaction; only a decider that is wrong could get here.
  if (interaction === null) throw new TypeError('a command was accepted for an interaction that does not exist');
  return { ok: true, interaction, revision: result.revision };
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
