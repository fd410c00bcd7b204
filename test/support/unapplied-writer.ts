/**
 * Writes to the log only, like a gateway that always dies between append and apply, or an importer that knows only
 * the event store: it never updates the read models.
 */
import { derivedId, newId } from '#libs/kernel/ids.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import type { ApplyOutcome, EntityWrite } from '#libs/platform/readmodel/read-model.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import type { Endpoint, WriteResult, Write } from './interaction-load.ts';
import { asRecord } from './log-reader.ts';

const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a14';

class UnappliedReadModel extends ReadModel {
  override apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    return Promise.resolve(writes.map(({ last }) => ({ kind: 'applied', stored: last })));
  }
}

export function composeUnapplied(platform: Platform): Features {
  return composeFeatures({ ...platform, readModel: new UnappliedReadModel(platform.redis) });
}

/** Accepts posts and renamings, as `userId` of the organization. */
export function unappliedEndpoint(features: Features, organizationId: string, userId: string): Endpoint {
  const since = new Map<string, number>();
  return {
    supports: ({ kind }) => kind === 'post' || kind === 'rename',
    async send(write, requestId, key): Promise<WriteResult> {
      const nowMs = Date.now();
      const repeatedSinceMs = key === null ? undefined : since.get(key);
      if (key !== null && repeatedSinceMs === undefined) since.set(key, nowMs);
      const context: CommandContext = {
        commandId: key === null ? newId() : derivedId(NAMESPACE, key),
        organizationId,
        actor: { type: 'user', id: userId },
        at: new Date(nowMs).toISOString(),
        correlationId: requestId,
        idempotencyKey: key ?? undefined,
        repeatedSinceMs,
      };
      try {
        return await run(features, context, write);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        return { outcome: error.code === 'outcome_unknown' ? 'unknown' : 'not_written', detail: error.message };
      }
    },
  };
}

async function run(
  { channels }: Features,
  context: CommandContext,
  { kind, channelId, body = {} }: Write,
): Promise<WriteResult> {
  const { name, content, complete, participant, parent_span_id: parent } = asRecord(body);
  if (kind === 'rename') {
    const result = await channels.update(context, channelId, { name: String(name) });
    return result.ok ? { outcome: 'acknowledged', detail: '' } : refused(result.rejection);
  }
  const post = {
    // The body as the load wrote it, which a gateway would parse.
    participant: (participant ?? { type: 'authenticated_user', user_id: context.actor.id }) as never,
    content: content as never,
    contentRole: participant === undefined ? ('user_message' as const) : ('agent_response' as const),
    complete: complete === true,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    spanId: derivedId(context.commandId, 'span'),
    parentSpanId: typeof parent === 'string' ? parent : null,
    organizationApplication: null,
  };
  const result = await channels.interactions.post(context, channelId, post, { spanIsNew: true });
  if (!result.ok) return refused(result.rejection);
  return { outcome: 'acknowledged', detail: '', body: asRecord(JSON.parse(String(result.document))) };
}

function refused({ reason }: { readonly reason: string }): WriteResult {
  return { outcome: 'unexpected', detail: reason };
}
