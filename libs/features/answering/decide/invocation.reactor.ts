import type { Agent } from '#libs/features/agents/index.ts';
import {
  CHANNEL,
  type ChannelState,
  interactionCodec,
  type InteractionEvent,
  interactionId,
  type InteractionPosted,
  parseInteractionId,
} from '#libs/features/channels/index.ts';

import {
  type ChannelSequence,
  type EventMetadata,
  sequenceOf,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
} from '#libs/kernel/event.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type StoredEvent } from '#libs/platform/eventstore/index.ts';
import { type EndedProcess, gathered, type Process, reactor } from '#libs/platform/reactors/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { Answering } from '../context.ts';
import {
  asksRelevance,
  type Behavior,
  decideInvocation,
  type Invocation,
  type InvocationEvent,
  invocationId,
  isFromAgent,
  isMessage,
  MAX_HOPS,
  type Message,
  messageOf,
  type PostedMessage,
  textOf,
} from './invocation.ts';
import type { Invocations } from './invocation.read.ts';
import { MAX_QUESTIONS, type RelevanceJudge } from './relevance-judge.ts';

/** The tools of decisions. */
type Deciding = Pick<Answering, 'agents' | 'organizations' | 'channels' | 'invocations' | 'runs' | 'store'> & {
  readonly relevance: RelevanceJudge;
};

type Context = Process<null, never>;

/** Mentions of agents that are not in the channel: decisions on further ones are not recorded. */
const MAX_ABSENT = 20;
/** For messages that come close together: their decisions share reads, appends and writes (decision 175). */
const GATHER_MS = 20;
/** A decision is one event. */
const FIRST = streamRevision(0);
/** Messages of an import are old: they invoke no agents. */
const IMPORT = 'import';

/**
 * Decides for each message of a channel and each agent in it whether the agent answers. All effects are commands whose ids
 * are derived from the message and the agent, so there is nothing to record of the process itself.
 */
export function invocationReactor(deciding: Deciding) {
  return reactor<null, never, InteractionEvent>({
    name: 'invocations',
    on: ['InteractionPosted.v1', 'InteractionCompleted.v1', 'InteractionCompleted.v2'],
    from: 'end',
    triggers: interactionCodec,
    processOf: (event, stream) =>
      interactionId({ channelId: stream.slice(`${CHANNEL}-`.length), sequence: sequenceOfMessage(event) }),
    process: {
      category: 'invocations',
      codec: defineEvents({}),
      fold: { initialState: null, evolve: () => null },
    },
    isEnded: () => false,
    isIrrelevant: (event) => !mayInvoke(event, deciding),
    delayMs: gathered(GATHER_MS),
    async handle(event, process) {
      const message = await readMessage(event, process, deciding);
      if (message !== null) await invoke(message, event.revision, process, deciding);
      return [];
    },
    async giveUp(_state, _why, event, process) {
      const message = await readMessage(event, process, deciding);
      if (message !== null) await endUndecided(message, event.revision, process, deciding);
      return [];
    },
    // Messages that wait for the model leave room for others.
    limits: deciding.relevance.asksModel ? { concurrency: MAX_QUESTIONS + 16 } : {},
  });
}

function sequenceOfMessage(event: StreamEvent<InteractionEvent>): ChannelSequence {
  return event.type === 'InteractionPosted.v1' ? sequenceOf(event.revision) : (event.data.sequence as ChannelSequence);
}

/**
 * Whether an event may complete a message that an agent answers, or that mentions one. Most messages are in channels
 * without agents, and most events of runs complete none: they cost no step. An agent that joins is known here once its
 * event is appended; for a channel that only other processes change, each message takes a step.
 */
function mayInvoke({ type, stream, revision, data, metadata }: StoredEvent, { channels }: Deciding): boolean {
  const { actor } = metadata as Partial<EventMetadata>;
  if (actor?.id === IMPORT && actor.type === 'system') return false;
  if (type !== 'InteractionPosted.v1') return type === 'InteractionCompleted.v2';
  const { complete, contentRole, invocationConfig } = data as Partial<InteractionPosted>;
  if (complete === false || (contentRole !== undefined && !isMessage(contentRole))) return false;
  if (invocationConfig !== null) return true;
  const hasNoAgents = (channel: ChannelState) => channel === null || agentsIn(channel).length === 0;
  return !channels.entities.isKnown(stream.slice(`${CHANNEL}-`.length), streamRevision(revision), hasNoAgents);
}

/** The complete message, or null for an event that makes none. */
async function readMessage(
  event: StreamEvent<InteractionEvent>,
  process: Pick<Context, 'id'>,
  { store }: Deciding,
): Promise<PostedMessage | null> {
  if (event.type === 'InteractionPosted.v1') return messageOf(process.id, event.data);
  if (event.type !== 'InteractionCompleted.v2') return null;
  const ref = parseInteractionId(process.id);
  if (ref === null) return null;
  const from = streamRevision(ref.sequence - 1);
  for await (const stored of store.readStream(streamName(CHANNEL, ref.channelId), { from, limit: 1 })) {
    const posted = interactionCodec.decode(stored);
    if (posted?.type !== 'InteractionPosted.v1') return null;
    const { content, invocationConfig } = event.data;
    return messageOf(process.id, {
      ...posted.data,
      content: content ?? posted.data.content,
      invocationConfig: invocationConfig ?? posted.data.invocationConfig,
    });
  }
  return null;
}

/** @param seenRevision of the event that completed the message: who was in the channel then decides, or at a later time */
async function invoke(
  posted: PostedMessage,
  seenRevision: StreamRevision,
  process: Context,
  deciding: Deciding,
): Promise<void> {
  const { organizationId } = process;
  const context = { ...process.commandContext('channel'), seenRevision };
  const channel = await deciding.channels.entities.current(context, posted.channelId);
  if (channel === null || channel.organizationId !== organizationId) return;
  const ids = agentsIn(channel);
  const isOpen = channel.archivedAt === null;
  // Participants that joined before agents were registered are not in the log.
  const agents = isOpen ? await registered(ids, organizationId, deciding) : [];
  // The sender that mentions an agent may wait for it, as a prompt does.
  const mentioned = [...posted.mentions].filter((id) => !isOpen || !ids.includes(id)).slice(0, MAX_ABSENT);
  const absent = await registered(mentioned, organizationId, deciding);
  if (agents.length === 0 && absent.length === 0) return;
  const message = { ...posted, depth: await depthOf(posted, process, deciding.invocations) };
  for (const { id } of absent) {
    const data = {
      ...aboutOf(message, id),
      reason: isOpen ? 'not_participant' : 'channel_archived',
      relevance: null,
    } as const;
    await deciding.invocations.record(process.commandContext(`decision ${id}`), { type: 'AgentWithheld.v3', data });
  }
  const decided = await Promise.all(
    agents.map((agent) => decide({ message, agent, behavior: channel.agentInvocationBehavior }, process, deciding)),
  );
  if (decided.some(({ reason }) => reason === 'depth_cap')) await notifyOfCap(message, decided, process, deciding);
}

function agentsIn({ participants }: NonNullable<ChannelState>): EntityId[] {
  return participants.flatMap((one) => (one.type === 'agent' ? [one.agentId] : []));
}

async function registered(ids: readonly EntityId[], organizationId: EntityId, { agents }: Deciding) {
  const found = await Promise.all(ids.map((id) => agents.agent(organizationId, id)));
  return found.filter((agent) => agent !== null);
}

/**
 * No decision depends on the depth of an agent's message that mentions no agent: the message has the depth of the run that
 * wrote it, which the worker usually remembers.
 */
async function depthOf(
  message: PostedMessage,
  { organizationId, commandContext }: EndedProcess,
  invocations: Invocations,
): Promise<number> {
  if (!isFromAgent(message)) return 0;
  const { channelId, turnId, sender, runId, mentions } = message;
  if (runId !== null && mentions.size === 0) {
    const own = await invocations.current({ ...commandContext('depth'), seenRevision: FIRST }, runId);
    // Clients choose the metadata of their messages.
    const isOwn = own?.channelId === channelId && own.turnId === turnId && own.agentId === sender.agentId;
    if (isOwn) return own.depth + 1;
  }
  return invocations.hopsBefore(organizationId, { channelId, turnId, agentId: sender.agentId });
}

interface Subject {
  readonly message: PostedMessage & Message;
  readonly agent: Agent;
  readonly behavior: Behavior;
}

/** Decides on one agent, and requests its run. */
async function decide(subject: Subject, process: Context, deciding: Deciding): Promise<Invocation> {
  const { message, agent, behavior } = subject;
  const isAsked = asksRelevance(message, agent, behavior);
  const id = invocationId(message.channelId, message.sequence, agent.id);
  // A message that is delivered again costs no tokens again.
  const first = isAsked && deciding.relevance.asksModel ? await deciding.invocations.decision(id) : null;
  const recorded = first ?? (await recordDecision(subject, isAsked, process, deciding));
  await requestRunOf(recorded, message, process, deciding);
  return recorded;
}

async function requestRunOf(
  { runId, agentId, depth }: Invocation,
  { channelId, messageId, turnId, spanId, invocationConfig }: PostedMessage,
  process: EndedProcess,
  deciding: Deciding,
): Promise<void> {
  if (runId === null) return;
  const run = { id: runId, agentId, channelId, messageId, turnId, spanId, invocationConfig, depth };
  await deciding.runs.request(process.commandContext(`run ${agentId}`), run);
}

/**
 * Ends a message that could not be decided on: agents without a decision are not invoked. Mentioned ones come first, as
 * prompts wait for them, and need the least that can fail.
 */
async function endUndecided(
  posted: PostedMessage,
  seenRevision: StreamRevision,
  process: EndedProcess,
  deciding: Deciding,
): Promise<void> {
  const { organizationId } = process;
  const message = { ...posted, depth: await depthOf(posted, process, deciding.invocations) };
  const withhold = async (ids: readonly EntityId[]): Promise<void> => {
    for (const { id } of await registered(ids, organizationId, deciding)) {
      const data = { ...aboutOf(message, id), reason: 'failed', relevance: null } as const;
      const context = process.commandContext(`decision ${id}`);
      const decision = await deciding.invocations.record(context, { type: 'AgentWithheld.v3', data });
      // An attempt may have failed between its decision and its run.
      await requestRunOf(decision, message, process, deciding);
    }
  };
  await withhold([...posted.mentions].slice(0, MAX_ABSENT));
  const context = { ...process.commandContext('channel'), seenRevision };
  const channel = await deciding.channels.entities.current(context, posted.channelId);
  if (channel?.organizationId !== organizationId) return;
  await withhold(agentsIn(channel));
}

/** @returns the first decision, which may be another one */
async function recordDecision(
  { message, agent, behavior }: Subject,
  isAsked: boolean,
  process: Context,
  { relevance, invocations }: Deciding,
): Promise<Invocation> {
  const context = process.commandContext(`decision ${agent.id}`);
  const { organizationId, traceparent } = context;
  const question = { organizationId, text: textOf(message), agent, traceparent };
  const judged = isAsked ? await relevance.judge(question, process.signal) : null;
  const verdict = decideInvocation(message, agent, { behavior, isRelevant: judged?.isRelevant === true });
  const about = { ...aboutOf(message, agent.id), relevance: judged?.relevance ?? null };
  const event: InvocationEvent = verdict.invoked
    ? { type: 'AgentInvoked.v2', data: { ...about, reason: verdict.reason, runId: about.id } }
    : { type: 'AgentWithheld.v3', data: { ...about, reason: verdict.reason } };
  return invocations.record(context, event);
}

function aboutOf({ channelId, sequence, messageId, turnId, depth }: Subject['message'], agentId: EntityId) {
  return { id: invocationId(channelId, sequence, agentId), channelId, sequence, messageId, turnId, agentId, depth };
}

/** Shows in the channel that agents were not invoked because they would go on and on. A repeated post finds its span. */
async function notifyOfCap(
  { channelId, turnId, spanId, depth, sequence }: PostedMessage & Message,
  decided: readonly Invocation[],
  process: Context,
  { channels, organizations }: Deciding,
): Promise<void> {
  const agentIds = decided.flatMap(({ reason, agentId }) => (reason === 'depth_cap' ? [agentId] : []));
  const text = `Agents have answered each other ${depth} times in this turn. The limit is ${MAX_HOPS}, so the last message invokes no further agent.`;
  const notification = {
    participant: { type: 'system' },
    content: [{ type: 'text', text }],
    contentRole: 'channel_notification' as const,
    complete: true,
    metadata: { reason: 'depth_cap', agent_ids: agentIds },
    invocationConfig: null,
    turnId,
    spanId: derivedId(channelId, `depth cap ${sequence}`),
    parentSpanId: spanId,
    organizationApplication: await organizations.application(process.organizationId),
  };
  await channels.interactions.post(process.commandContext('depth cap'), channelId, notification, { spanIsNew: false });
}
