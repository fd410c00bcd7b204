import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import { type EntityId, newId } from '#libs/kernel/ids.ts';
import { Entities, entity, type EntityCore, type EntityResult } from '#libs/platform/entity/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { costSchema, usageResource, usageSchema } from '#libs/platform/model/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';

import { finishOf, modelOf, totalCost, totalUsage } from './run.summary.ts';
import {
  hasEnded,
  RUN,
  type Run,
  runCodec,
  type RunEvent,
  runFold,
  type RunRequested,
  type RunState,
  type Step,
} from './run.ts';

const milliseconds = z.int().nullable();

const stepSchema = z
  .object({
    step: z.int(),
    kind: z.enum(['model', 'tool']),
    status: z
      .string()
      .describe('Why the model stopped, or the status of the tool call; `running` until it has finished'),
    tool_name: z.string().nullable(),
    tool_call_id: z.string().nullable(),
    started: shownTime(),
    finished: z.string().nullable(),
    duration_ms: milliseconds,
    usage: usageSchema.nullable(),
    cost: costSchema,
    omitted: z
      .array(z.string())
      .describe('What the request of a model step left out, since the endpoint refuses it: parameters, tools'),
    missing_tool_servers: z
      .array(z.object({ name: z.string(), reason: z.string() }))
      .describe('Servers whose tools, or some of them, the model did not have'),
  })
  .meta({ id: 'RunStep' });

type ShownStep = Omit<z.infer<typeof stepSchema>, 'missing_tool_servers'>;

function finishedStep(one: Step): ShownStep {
  const { step, kind, startedAt, finishedAt } = one;
  const isTool = one.kind === 'tool';
  return {
    step,
    kind,
    status: isTool ? one.status : one.finish,
    tool_name: isTool ? one.name : null,
    tool_call_id: isTool ? one.callId : null,
    started: startedAt,
    finished: finishedAt,
    duration_ms: Date.parse(finishedAt) - Date.parse(startedAt),
    usage: isTool ? null : usageResource(one.usage),
    cost: isTool ? null : one.cost,
    omitted: isTool ? [] : (one.omitted ?? []),
  };
}

function runningStep({ started, steps }: Run): ShownStep[] {
  if (started === null) return [];
  const { step, callId, at } = started;
  const calls = steps.flatMap((one) => (one.kind === 'model' ? one.toolCalls : []));
  return [
    {
      step,
      kind: callId === null ? 'model' : 'tool',
      status: 'running',
      tool_name: calls.find(({ id }) => id === callId)?.name ?? null,
      tool_call_id: callId,
      started: at,
      finished: null,
      duration_ms: null,
      usage: null,
      cost: null,
      omitted: [],
    },
  ];
}

const runFields = shownFields<Run>()({
  id: z.string(),
  agent_id: z.string(),
  channel_id: z.string(),
  message_id: z.string().describe('Id of the interaction that is answered'),
  interaction_id: [z.string().describe('Id of the user turn'), ({ turnId }) => turnId],
  response_id: z.string().nullable().describe('Id of the interaction with the answer'),
  asked_by: [
    z.string().nullable().describe('Id of the run that waits for this one; null for the answer to a message'),
    ({ asked }) => asked?.askedBy.runId ?? null,
  ],
  depth: z.int().describe('Hops between agents in this turn before this run'),
  status: [
    z.enum(['queued', 'running', 'completed', 'failed', 'cancelled']).meta({ id: 'RunStatus' }),
    ({ phase }) => phase,
  ],
  error: [
    z
      .object({
        reason: z.string(),
        message: z.string(),
        detail: z
          .string()
          .nullable()
          .describe('What the model endpoint said; null for keys without the scope `admin`, and if it said nothing'),
      })
      .nullable(),
    ({ failure }) => failure && { reason: failure.reason, message: failure.message, detail: null },
  ],
  model: [
    z
      .object({ kind: z.string(), name: z.string() })
      .nullable()
      .describe('What answers; the name is the one that the endpoint gave with its last answer'),
    (run) => modelOf(run) ?? run.claim?.model ?? null,
  ],
  finish_reason: [
    z
      .string()
      .nullable()
      .describe(
        'Why the model ended its last message: `stop`, `length`, `tool_calls`, `content_filter` or a word of its own',
      ),
    finishOf,
  ],
  steps: [
    z.array(stepSchema),
    (run) =>
      [...run.steps.map(finishedStep), ...runningStep(run)].map((one) => ({
        ...one,
        missing_tool_servers: run.missed.flatMap(({ step, servers }) => (step === one.step ? servers : [])),
      })),
  ],
  usage: [usageSchema, (run) => usageResource(totalUsage(run))],
  cost: [costSchema, totalCost],
  duration_ms: [
    milliseconds.describe('From the request to the end; null until then'),
    ({ createdAt, endedAt }) => (endedAt === null ? null : Date.parse(endedAt) - Date.parse(createdAt)),
  ],
  created: [shownTime(), ({ createdAt }) => createdAt],
  modified: shownTime(),
});
export const runSchema = z.object(runFields.shape).meta({ id: 'Run' });

type RunFacets = { readonly status: string; readonly agent: string; readonly channel: string };

export const runEntity = entity<RunState, RunEvent, RunFacets>({
  category: RUN,
  version: 7,
  codec: runCodec,
  fold: runFold,
  resource: runFields.resource,
  facets: (run) => ({ status: run.phase, agent: run.agentId, channel: run.channelId }),
  // The last frame wakes the prompts that wait for the run; they read it in the log.
  frame: ({ after }) => ({ type: 'run.changed', json: JSON.stringify(after && { id: after.id, status: after.phase }) }),
  isEnded: (run) => hasEnded(run) && run.isEndShown,
});

export class Runs extends Entities<RunState, RunEvent, RunFacets> {
  constructor(core: EntityCore) {
    super(runEntity, core);
  }

  /** The cause of the request of a run. Absent for a run that does not exist. @throws `Fault` `store_unavailable` */
  async causeOf(id: EntityId): Promise<Pick<CommandContext, 'correlationId' | 'traceparent'>> {
    for await (const stored of this.store.readStream(streamName(RUN, id), { limit: 1 })) {
      const { $correlationId: correlationId, traceparent } = runCodec.decode(stored)?.metadata ?? {};
      return { correlationId, traceparent };
    }
    return {};
  }

  /** Requests a run; one with this id that exists stays as it is. The caller has checked the channel and the message. */
  request(context: CommandContext, data: RunRequested): Promise<EntityResult<Run>> {
    // A new command for each attempt: with the ids of an earlier one, the event store would acknowledge its event.
    const { commandId, correlationId = commandId } = context;
    const attempt = { ...context, commandId: newId(), correlationId, isNew: true };
    return this.create(attempt, data.id, { type: 'RunRequested.v1', data });
  }
}
