/**
 * Folds the events of a channel into its interactions as REST should answer them. Written from the contract and not
 * from the feature's code, so that a test does not repeat its mistakes.
 */
import { asRecord, type LogEvent } from './log-reader.ts';
import { annotationsOf, isAnnotation } from './past.ts';

export type InteractionResource = Record<string, unknown>;

/** Without `id`. A sequence is the revision plus 1. */
export function foldInteractions(channelId: string, events: readonly LogEvent[]): Map<number, InteractionResource> {
  const interactions = new Map<number, InteractionResource>();
  for (const [index, { type, data, metadata }] of events.entries()) {
    if (type === 'InteractionPosted.v1') {
      interactions.set(index + 1, {
        created_at: metadata['at'],
        channel_id: channelId,
        participant: data['participant'],
        content: data['content'],
        content_role: data['contentRole'],
        complete: data['complete'],
        metadata: data['metadata'],
        invocation_config: data['invocationConfig'],
        interaction_id: data['turnId'],
        sequence: index + 1,
        span_id: data['spanId'],
        parent_span_id: data['parentSpanId'],
        organization_id: metadata['organizationId'],
        organization_application: data['organizationApplication'],
        reactions: null,
        mention_invite_prompt_dismissed: false,
        agent_read_receipts: null,
      });
    }
    if (!/^Interaction(ContentAppended|Completed|Failed)\.v[12]$/.test(type)) continue;
    const target = interactions.get(Number(data['sequence']));
    if (target === undefined || target['complete'] === true)
      throw new TypeError(`${type} of an interaction that is not incomplete`);
    if (type === 'InteractionContentAppended.v1') {
      target['content'] = [...listOf(target['content']), ...listOf(data['content'])];
    } else {
      target['complete'] = true;
      if (type === 'InteractionCompleted.v2') {
        target['content'] = data['content'] ?? target['content'];
        target['metadata'] = data['metadata'] ?? target['metadata'];
        target['invocation_config'] = data['invocationConfig'] ?? target['invocation_config'];
      } else target['metadata'] = { ...asRecord(target['metadata'] ?? {}), failure: data['reason'] };
    }
  }
  return interactions;
}

/**
 * The same with its reactions, receipts and dismissals, as Ada sees it; without the ids that are derived from
 * positions.
 */
export function foldAnnotatedInteractions(channelId: string, events: readonly LogEvent[]): InteractionResource[] {
  return [...foldInteractions(channelId, events)].map(([sequence, interaction]) => {
    const own = events.filter((event) => isAnnotation(event) && event.data['sequence'] === sequence);
    return { ...interaction, ...annotationsOf(own) };
  });
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
