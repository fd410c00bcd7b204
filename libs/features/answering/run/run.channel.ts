import type { Agent } from '#libs/features/agents/index.ts';
import {
  type Drafts,
  type FinalDetails,
  interactionId,
  type InteractionRef,
  parseInteractionId,
  type PostResult,
} from '#libs/features/channels/index.ts';
import type { Actor } from '#libs/kernel/event.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { Process } from '#libs/platform/reactors/index.ts';

import type { Answering } from '../context.ts';
import type { CalledTool, Run, RunEvent, RunState } from './run.ts';

/** A step of a run in one worker. */
export interface StepOfRun {
  readonly run: Run;
  readonly agent: Agent;
  readonly process: Process<RunState, RunEvent>;
  readonly channel: RunInChannel;
}

type Role = 'agent_reasoning' | 'tool_call' | 'tool_call_result' | 'agent_response' | 'internal_error';

export interface RunPost {
  readonly role: Role;
  readonly content: readonly object[];
  /** Of the post in the run: the same name is posted once. */
  readonly name: string;
  /** Default: the message that is answered. */
  readonly below?: string;
  readonly complete?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly invocationConfig?: Readonly<Record<string, unknown>> | null;
}

/** The channel does not take what the run posts: it was archived, or the message is not there. */
export class ChannelRefusal extends Error {
  override readonly name = 'ChannelRefusal';
  readonly reason: string;

  constructor(reason: string) {
    super(`the channel refused: ${reason}`);
    this.reason = reason;
  }
}

/** Namespace of the spans and commands of runs. Part of the storage format: never change it. */
const RUNS = '2f0b7c61-5f0e-4a53-9d3a-6c1d1a1f7f04';

/** `actor`: the program of an external agent, with its key. Default: Parley. */
type Cause = Pick<CommandContext, 'correlationId' | 'traceparent'> & { readonly actor?: Actor };

const ACTOR = { type: 'system', id: 'reactor:agent-runs' } as const;

/**
 * Shows a run in its channel. Each post is made once, however often a step is repeated and by however many
 * workers: spans and commands are derived from the run. Throws the faults of commands.
 */
export class RunInChannel {
  readonly #run: Run;
  readonly #answering: Pick<Answering, 'channels' | 'organizations'>;
  readonly #cause: Cause;

  /** @param cause of the events that the run writes: the request that it follows from */
  constructor(run: Run, answering: Pick<Answering, 'channels' | 'organizations'>, cause: Cause) {
    this.#run = run;
    this.#answering = answering;
    this.#cause = cause;
  }

  /** @returns null where nothing is shown: for the run of an agent that another agent asks @throws ChannelRefusal */
  async post(given: RunPost): Promise<Extract<PostResult, { ok: true }> | null> {
    const { channelId, asked } = this.#run;
    if (asked !== null) return null;
    const interaction = await this.#interaction(given);
    const context = this.#context(given.name);
    const post = (more: Partial<CommandContext> = {}) =>
      this.#answering.channels.interactions.post({ ...context, ...more }, channelId, interaction, { spanIsNew: false });
    let result = await post();
    // Posted by an earlier attempt, or by another worker: its event is in the log.
    if (!result.ok && result.rejection.reason === 'span_taken') {
      result = await post({ repeatedSinceMs: Date.parse(this.#run.createdAt) });
    }
    if (!result.ok) throw new ChannelRefusal(result.rejection.reason);
    return result;
  }

  /**
   * Shows how far a tool call is, to clients that are there now.
   *
   * @param update an update as the contract has it
   * @returns the update that is shown now, or null as `post` @throws ChannelRefusal
   */
  async update(call: CalledTool, sequence: number, update: object): Promise<string | Buffer | null> {
    if (this.#run.asked !== null) return null;
    const toolCallId = this.toolCallId(call.id);
    const item = { type: 'tool_call_update', tool_name: call.name, tool_call_id: toolCallId, sequence };
    const interaction = await this.#interaction({
      role: 'tool_call',
      content: [{ ...item, update }],
      name: `update ${call.id} ${sequence}`,
      below: this.spanOf(`call ${call.id}`),
    });
    const shown = { ...interaction, contentRole: 'tool_call_update' as const };
    const result = await this.#answering.channels.interactions.update(
      this.#context(`update ${call.id} ${sequence}`),
      this.#run.channelId,
      shown,
      { toolCallId, sequence },
    );
    if (!result.ok) throw new ChannelRefusal(result.rejection.reason);
    return result.document;
  }

  /** Shows a call, once. */
  postCall(call: CalledTool, item: object, more: Pick<RunPost, 'metadata'> = {}): ReturnType<RunInChannel['post']> {
    const content = [{ type: 'tool_call', ...this.#named(call), ...item }];
    return this.post({ role: 'tool_call', content, name: `call ${call.id}`, ...more });
  }

  /** Shows the result of a call below it, once. @throws ChannelRefusal `parent_not_found` for a call that is not shown */
  postResult(call: CalledTool, item: object, more: Pick<RunPost, 'metadata'> = {}): ReturnType<RunInChannel['post']> {
    const content = [{ type: 'tool_call_result', ...this.#named(call), display_text: null, ...item }];
    const below = this.spanOf(`call ${call.id}`);
    return this.post({ role: 'tool_call_result', content, name: `result ${call.id}`, below, ...more });
  }

  #named({ id, name }: CalledTool): object {
    return { tool_name: name, tool_call_id: this.toolCallId(id) };
  }

  /** Unique in the channel, where the calls of all runs are shown. */
  toolCallId(callId: string): string {
    return `${this.#run.id}-${callId}`;
  }

  spanOf(name: string): string {
    return derivedId(RUNS, `run-${this.#run.id} ${name}`);
  }

  idOf(ref: InteractionRef): EntityId {
    return interactionId(ref);
  }

  /** Only messages of users have read receipts. */
  async recordReceipt(): Promise<void> {
    const ref = parseInteractionId(this.#run.messageId);
    if (ref === null || this.#run.asked !== null) return;
    await this.#answering.channels.reactions.recordReceipt(this.#context('receipt'), ref, this.#run.agentId);
  }

  /** Completes an interaction; one that has ended by now stays as it is. */
  async complete(ref: InteractionRef, text: string, details: FinalDetails = {}): Promise<void> {
    const content = [{ type: 'text', text }];
    await this.#answering.channels.interactions.complete(this.#context('complete'), ref, content, 'operator', details);
  }

  async fail(ref: InteractionRef, reason: string): Promise<void> {
    await this.#answering.channels.interactions.fail(this.#context('fail'), ref, reason);
  }

  /** The response, if it was posted and is not complete. */
  async openResponse(): Promise<InteractionRef | null> {
    const { channelId, asked } = this.#run;
    if (asked !== null) return null;
    return this.#answering.channels.openInteraction(this.#context('look'), channelId, this.spanOf('response'));
  }

  /** The text of an incomplete response that subscribers have seen. */
  draftOf(ref: InteractionRef): Promise<string> {
    return this.#answering.channels.drafts.textOf(this.#run.organizationId, ref);
  }

  /** @param offset length that the draft has; null replaces it */
  putDraft(ref: InteractionRef, offset: number | null, text: string): ReturnType<Drafts['put']> {
    return this.#answering.channels.drafts.put(this.#run.organizationId, ref, { offset, text }, 'operator');
  }

  async #interaction({
    role,
    content,
    name,
    below,
    complete = true,
    metadata = null,
    invocationConfig = null,
  }: RunPost) {
    const { agentId, turnId, spanId, organizationId } = this.#run;
    return {
      participant: { type: 'agent', agent_id: agentId, agent_metadata: null },
      content: content as { type: string }[],
      contentRole: role,
      complete,
      metadata,
      invocationConfig,
      turnId,
      spanId: this.spanOf(name),
      parentSpanId: below ?? spanId,
      organizationApplication: await this.#answering.organizations.application(organizationId),
    };
  }

  #context(name: string): CommandContext {
    const { organizationId, id } = this.#run;
    return {
      commandId: derivedId(RUNS, `run-${id} ${name} command`),
      organizationId,
      actor: this.#cause.actor ?? ACTOR,
      at: systemClock.now(),
      correlationId: this.#cause.correlationId,
      traceparent: this.#cause.traceparent,
    };
  }
}
