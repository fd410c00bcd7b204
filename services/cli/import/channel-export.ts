/*
 * The lines of an exported channel: the channel, its interactions by sequence, and its threads, likewise. Lines have the
 * form of the REST API. What an import needs besides is in the member `export`.
 */
import {
  interactionId,
  interactionOf,
  parseInteractionId,
  type StoredInteraction,
} from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Features } from '#services/features.ts';

type ExportParts = Pick<Features, 'channels' | 'users' | 'agents'> & {
  readonly organizationId: EntityId;
};

const PAGE = 200;
/** Reads as a service does: no reaction counts as its own. */
const READER = { userId: null };
const FILTER = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;

export class ChannelExport {
  readonly #parts: ExportParts;
  readonly #names = new Map<EntityId, Promise<string | null>>();

  constructor(parts: ExportParts) {
    this.#parts = parts;
  }

  /** @param about members of `export` */
  async *lines(id: EntityId, channel: Buffer, about: object = {}): AsyncGenerator<string> {
    yield lineOf(channel, about);
    const threads = await Array.fromAsync(this.#threadsOf(id));
    const origins = new Set(threads.map(({ originId }) => originId));
    yield* this.#interactionLines(id, origins);
    for (const one of threads) yield* this.lines(one.id, one.json, await this.#origin(one.originId));
  }

  async *#interactionLines(id: EntityId, origins: ReadonlySet<string | null>): AsyncGenerator<string> {
    const { channels, organizationId } = this.#parts;
    for (let after: string | null = null, more = true; more;) {
      const page = { size: PAGE, offset: 0, after };
      const found = await channels.queries.list(organizationId, id, FILTER, page, READER);
      if (found === null) return;
      const items = found.items.map((json) => ({ json, one: interactionOf(json) }));
      const sequences = items.map(({ one }) => one.sequence);
      const reacted = await channels.annotations.reactionsOf(organizationId, id, sequences);
      for (const { json, one } of items) {
        const marks = (reacted.get(one.sequence) ?? []).map(({ emoji, reactor }) => ({ emoji, reactor }));
        const name = await this.#nameOf(one.participant);
        yield lineOf(json, {
          ...(name !== null && { sender_name: name }),
          ...(marks.length > 0 && { reactions: marks }),
          ...(origins.has(interactionId({ channelId: id, sequence: one.sequence })) && { starts_thread: true }),
        });
      }
      after = found.last;
      more = found.hasNext && after !== null;
    }
  }

  /** Oldest first. */
  async *#threadsOf(parentChannelId: EntityId) {
    const { channels, organizationId } = this.#parts;
    const found: { readonly id: EntityId; readonly originId: string | null; readonly json: Buffer }[] = [];
    for (const archived of [false, true]) {
      for (let after: string | null = null, more = true; more;) {
        const page = { size: PAGE, offset: 0, after };
        const list = await channels.list(organizationId, { archived, parentChannelId }, page);
        for (const [index, { json }] of list.documents.entries()) {
          const id = list.ids[index] ?? '';
          const channel = await channels.entities.find(organizationId, id);
          found.push({ id, originId: channel?.originMessageId ?? null, json });
        }
        after = list.last;
        more = list.hasNext && after !== null;
      }
    }
    yield* found.toReversed();
  }

  /** The message that a thread is about, by what stays the same in an import. */
  async #origin(id: string | null): Promise<object> {
    const ref = id === null ? null : parseInteractionId(id);
    if (ref === null) return {};
    const { channels, organizationId } = this.#parts;
    const found = await channels.queries.interaction(organizationId, ref, {
      reader: READER,
      includeIncomplete: true,
    });
    if (found === null) return {};
    const { spanId, turnId } = interactionOf(found);
    return { origin: { span_id: spanId, interaction_id: turnId } };
  }

  #nameOf(participant: StoredInteraction['participant']): Promise<string | null> {
    const { users, agents, organizationId } = this.#parts;
    const userId = participant.type === 'authenticated_user' ? participant.user_id : undefined;
    const agentId = participant.type === 'agent' ? participant.agent_id : undefined;
    const id = userId ?? agentId;
    if (id === undefined) return Promise.resolve(null);
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const name =
      userId === undefined
        ? agents.find(organizationId, id).then((found) => found?.name ?? null)
        : users.user(organizationId, id).then((found) => found?.displayName ?? null);
    if (this.#names.size >= 10_000) this.#names.clear();
    this.#names.set(id, name);
    return name;
  }
}

/** Adds `export` at the end of the object, so that the rest of the line is what the API returns, byte for byte. */
function lineOf(json: Buffer, about: object): string {
  const text = json.toString();
  if (Object.keys(about).length === 0) return `${text}\n`;
  return `${text.slice(0, -1)},"export":${JSON.stringify(about)}}\n`;
}
