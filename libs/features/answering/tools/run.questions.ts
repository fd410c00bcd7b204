import { z } from 'zod';

import type { Agent, AgentProfile } from '#libs/features/agents/index.ts';
import { accept, type Decision } from '#libs/kernel/decider.ts';
import { admitText } from '#libs/kernel/text.ts';
import { derivedId, ENTITY_ID, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { inOneLine } from '#libs/platform/model/index.ts';
import { reactor } from '#libs/platform/reactors/index.ts';

import type { Answering } from '../context.ts';
import { MAX_HOPS } from '../decide/invocation.ts';
import { runEntity, type Runs } from '../run/run.read.ts';
import {
  answerText,
  decideCancel,
  hasEnded,
  isWaiting,
  type Question,
  type QuestionAnswered,
  type QuestionReceived,
  type Run,
  type RunEvent,
  type RunState,
} from '../run/run.ts';
import { ASK_TOOL, failure, type RunTool, sourcesOf, type ToolOutcome } from './run.tools.ts';

/** The asking run is answered after this time at the latest: well before its own time is over. */
const ANSWER_TIMEOUT_MS = 300_000;
/** Of one run that follows from no other one. Each further hop has half as many, so that agents do not multiply. */
const MAX_QUESTIONS = 8;
const MAX_QUESTION = 4_000;
const MAX_ANSWER_CHARS = 20_000;
const MAX_LISTED = 20;
const MAX_DESCRIPTION = 200;

const NO_SUCH_AGENT = 'there is no such agent';

type Others = Pick<Answering, 'agents' | 'channels'>;

const askInput = z.object({
  agent: z.string().trim().min(1).max(256).describe('Id or name of the agent'),
  question: z
    .string()
    .trim()
    .min(1)
    .max(MAX_QUESTION)
    .describe('Everything that the agent needs to know: it sees nothing of this conversation'),
});

const withheld = z.object({
  withheld_mentions: z.array(z.object({ type: z.string(), id: z.string() })).nullish(),
});

/**
 * Asks another agent: a call does not answer by itself, but becomes the event `QuestionAsked`. Repeatable: the run of the
 * asked agent has an id that follows from the call.
 */
export async function askTool(run: Run, answering: Others): Promise<RunTool> {
  const others = await askableAgents(run, answering);
  return {
    name: ASK_TOOL,
    description: ['Asks another agent, and returns its answer. Agents, with their ids:', ...others.map(lineOf)].join(
      '\n',
    ),
    input: askInput,
    isRepeatable: true,
    displayText: ({ agent }) => `Asking ${String(agent)}`,
    async run(input, { callId }) {
      const { agent: named, question } = askInput.parse(input);
      const refusal = refusalOf(run);
      if (refusal !== null) return failure(refusal);
      const agent = await foundAgent(run, named, others, answering);
      if (typeof agent === 'string') return failure(agent);
      return { asks: { runId: derivedId(run.id, `question ${callId}`), agentId: agent.id, question } };
    },
  };
}

/** Agents that take part in the channel, then others of the organization; newest first. */
async function askableAgents(run: Run, answering: Others): Promise<readonly AgentProfile[]> {
  const withheld = withheldBy(run);
  const present = await agentsBeside(run, answering);
  const listed = await answering.agents.listed(run.organizationId, MAX_LISTED + 1);
  const others = listed.filter(({ id }) => id !== run.agentId && !withheld.has(id));
  return [...present, ...others.filter(({ id }) => present.every((one) => one.id !== id))].slice(0, MAX_LISTED);
}

/**
 * Active agents that take part in the channel, personal ones included, without this one and those that the message
 * withholds: at most {@link MAX_LISTED}.
 */
export async function agentsBeside(run: Run, { agents, channels }: Others): Promise<readonly AgentProfile[]> {
  const { organizationId, channelId, agentId } = run;
  const withheld = withheldBy(run);
  const others = [...(await channels.agentsIn(organizationId, channelId))].filter(
    (id) => id !== agentId && !withheld.has(id),
  );
  const found = await Promise.all(others.slice(0, MAX_LISTED).map((id) => agents.agent(organizationId, id)));
  return found.filter((agent) => agent !== null).filter(({ isActive }) => isActive);
}

/** Agents that must not be invoked in the turn, not by way of another agent either. */
function withheldBy({ invocationConfig }: Run): ReadonlySet<EntityId> {
  const { withheld_mentions: mentions } = withheld.safeParse(invocationConfig ?? {}).data ?? {};
  return new Set(mentions?.map(({ id }) => id));
}

/** A line of its own for each agent, whatever its texts contain. */
export function lineOf({ id, name, description }: AgentProfile): string {
  const about = inOneLine(description, MAX_DESCRIPTION);
  return `- ${inOneLine(name)} (${id})${about === '' ? '' : `: ${about}`}`;
}

/** Whether a model means the agent by a name that it has read in the line of the agent. */
export function isNamed({ name }: AgentProfile, named: string): boolean {
  return inOneLine(name) === inOneLine(named);
}

/** How many other agents a run may ask, and how many it may mention. */
export function mostAt({ depth }: Pick<Run, 'depth'>): number {
  return Math.max(1, MAX_QUESTIONS >> depth);
}

function refusalOf({ depth, steps }: Run): string | null {
  if (depth >= MAX_HOPS) {
    return `agents have asked and answered each other ${depth} times in this turn, and the limit is ${MAX_HOPS}: answer without asking`;
  }
  const asked = steps.filter((one) => one.kind === 'tool' && one.name === ASK_TOOL && 'run_id' in one.result).length;
  const most = mostAt({ depth });
  return asked < most ? null : `${asked} questions were asked in this run, and the limit is ${most}`;
}

/** @returns what is wrong with the name, for the model; an agent that must not be seen is answered as a missing one */
async function foundAgent(
  run: Run,
  named: string,
  others: readonly AgentProfile[],
  { agents, channels }: Others,
): Promise<Agent | string> {
  const { organizationId, channelId, agentId } = run;
  const byName = others.filter((one) => isNamed(one, named));
  const candidates = byName.length > 0 ? byName : await agents.listed(organizationId, 2, named);
  const isId = ENTITY_ID.test(named) && (candidates.length === 0 || others.some(({ id }) => id === named));
  if (!isId && candidates.length > 1) return 'several agents have this name: give the id of one';
  const id = isId ? named : candidates[0]?.id;
  if (id === agentId) return 'an agent cannot ask itself';
  if (id !== undefined && withheldBy(run).has(id)) return 'the message withholds this agent';
  // Lists come from the read model, which may lag.
  const agent = id === undefined ? null : await agents.agent(organizationId, id);
  if (agent?.isActive !== true) return NO_SUCH_AGENT;
  return agent.isPersonal && !(await channels.agentsIn(organizationId, channelId)).has(agent.id)
    ? NO_SUCH_AGENT
    : agent;
}

/** The run of the agent that a waiting run asks. */
function receivedFrom(run: Run, { runId, agentId, question }: Question): QuestionReceived {
  const { channelId, messageId, turnId, spanId, invocationConfig } = run;
  const askedBy = { runId: run.id, agentName: run.claim?.agentName ?? '' };
  const depth = run.depth + 1;
  return { id: runId, agentId, channelId, messageId, turnId, spanId, depth, invocationConfig, question, askedBy };
}

/** The outcome of a run that has ended, for the run that asks it. */
function answerFor(run: Run): ToolOutcome {
  const about = { agent: { id: run.agentId, name: run.claim?.agentName ?? null }, run_id: run.id };
  if (run.phase === 'cancelled') return { status: 'failure', result: { ...about, error: 'the run was cancelled' } };
  if (run.failure !== null) return { status: 'failure', result: { ...about, error: run.failure.message } };
  const all = answerText(run);
  const answer = admitText(all, MAX_ANSWER_CHARS);
  const is_cut = all.length > MAX_ANSWER_CHARS;
  return { status: 'success', result: { ...about, answer, is_cut, sources: sourcesOf(run) } };
}

/**
 * Requests the runs of agents that are asked, and limits the time that their answers may take. The end of a run is passed
 * to the run that waits for it by `run-ends`, and found here if that has failed.
 */
export function runQuestions({ runs }: Pick<Answering, 'runs'>) {
  return reactor<RunState, RunEvent>({
    name: 'run-questions',
    on: ['QuestionAsked.v1'],
    process: runEntity.projection,
    startRevision: (run) => run?.question?.revision ?? null,
    isEnded: (run) => run !== null && (hasEnded(run) || !isWaiting(run)),
    async handle(_event, { state: run, commandContext }) {
      if (run === null || run.question === null) return [];
      const data = receivedFrom(run, run.question);
      const event = { type: 'QuestionReceived.v1', data } as const;
      const asked = await runs.create(commandContext('question'), data.id, event);
      return asked.ok && hasEnded(asked.entity) ? [answered(run.question, answerFor(asked.entity))] : [];
    },
    giveUp: (run) => {
      const error = 'the agent has not answered in time';
      return run?.question ? [answered(run.question, { status: 'failure', result: { error } })] : [];
    },
    limits: { concurrency: 32, deadlineMs: ANSWER_TIMEOUT_MS },
  });
}

function answered({ callId, runId }: Question, outcome: ToolOutcome): RunEvent {
  return { type: 'QuestionAnswered.v1', data: { callId, runId, ...outcome } };
}

/** Passes the end of a run to the run that waits for it. Repeatable. */
export async function answerAsker(run: Run, context: CommandContext, runs: Runs): Promise<void> {
  if (run.asked === null) return;
  const answer = { runId: run.id, ...answerFor(run) };
  await runs.update(context, run.asked.askedBy.runId, (asker) => decideAnswer(asker, answer));
}

/** Ends the run that a question has started, if it is not over: its answer is not waited for any longer. */
export async function endQuestion({ question }: Run, context: CommandContext, runs: Runs): Promise<void> {
  if (question !== null) await runs.update(context, question.runId, decideCancel);
}

/** Whether the run that has asked still waits. */
export async function isAwaited({ id, organizationId, asked }: Run, runs: Runs): Promise<boolean> {
  if (asked === null) return true;
  const asker = await runs.latest(organizationId, asked.askedBy.runId);
  return asker !== null && !hasEnded(asker) && isWaiting(asker) && asker.question?.runId === id;
}

/** An answer that the run does not wait for, or not any longer, is dropped. */
function decideAnswer(run: Run, answer: Omit<QuestionAnswered, 'callId'>): Decision<RunEvent, never> {
  const { question } = run;
  if (hasEnded(run) || question?.runId !== answer.runId || question.answer !== null) return accept();
  return accept({ type: 'QuestionAnswered.v1', data: { callId: question.callId, ...answer } });
}
