import { z } from 'zod';

import { UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { idReference, liveCommand, type LiveCommandType, requireMayActAs } from '#libs/platform/http/index.ts';
import {
  channelTopic,
  decodeLiveMessage,
  EphemeralValues,
  type LiveValue,
  type LiveValues,
} from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** How long a principal counts as typing after its command. */
const TYPING_TTL_MS = 10_000;
/** Principals of one channel that are shown as typing at a time. */
const MAX_TYPING = 64;

const typingData = z
  .object({
    agent_id: idReference({ description: 'The agent that is typing. Default: the caller' }).nullish(),
    typing: z.boolean().default(true).describe('`false`: stopped typing'),
  })
  .nullish();

interface Writer {
  /** `user`, `agent` or `service`. */
  readonly type: string;
  readonly id: string;
}

/** The last {@link MAX_TYPING} writers of a channel that typed to this process, until the last of them has expired or posted. */
interface Watched {
  readonly writers: Map<string, Writer>;
  /** Posts to the channel are received. */
  readonly listening: Promise<void>;
  expiry: NodeJS.Timeout | undefined;
  stop(): void;
}

const SUBSCRIBE_TIMEOUT_MS = 5_000;
const postedFrame = z.object({
  type: z.literal('interaction.posted'),
  actor: z.object({ id: z.string() }),
  data: z.object({ participant: z.object({ user_id: z.string().nullish(), agent_id: z.string().nullish() }) }),
});

/**
 * The users and agents that are typing in a channel: ephemeral frames with the `key` `typing:<id>`.
 *
 * A post ends the typing of its sender. The process that a writer types to follows the channel meanwhile, so that a post
 * costs nothing where its sender does not type. A post that it misses leaves the typing to expire.
 */
export class Typing implements LiveValues {
  readonly #values: EphemeralValues;
  readonly #topics: Pick<Platform['topics'], 'subscribe'>;
  readonly #watched = new Map<string, Watched>();

  constructor({ redis, topics }: Pick<Platform, 'redis' | 'topics'>) {
    this.#topics = topics;
    const kind = { name: 'typing', keyPrefix: 'typing', ttlMs: TYPING_TTL_MS, max: MAX_TYPING };
    this.#values = new EphemeralValues(redis, kind);
  }

  current(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]> {
    return this.#values.current(organizationId, channelId);
  }

  /** Does nothing for a writer that is not typing. @throws `Fault` `store_unavailable` */
  #end(organizationId: EntityId, channelId: EntityId, writers: readonly Writer[]): Promise<void> {
    const values = writers.map((writer) => valueOf(writer, false));
    return this.#values.end(organizationId, channelId, values);
  }

  readonly command: LiveCommandType = liveCommand({
    type: 'typing',
    summary: `Show that the caller, or an agent, is typing, for ${TYPING_TTL_MS / 1000} seconds`,
    data: typingData,
    isDurable: false,
    run: async ({ principal, channelId, data }) => {
      const { organizationId, principalType, principalId } = principal;
      if (data?.agent_id) requireMayActAs(principal, UNAUTHENTICATED);
      const writer = data?.agent_id ? { type: 'agent', id: data.agent_id } : { type: principalType, id: principalId };
      const typing = data?.typing ?? true;
      if (typing) {
        await this.#watch(organizationId, channelId, writer);
        await this.#values.put(organizationId, channelId, valueOf(writer, true));
      } else await this.#end(organizationId, channelId, [writer]);
      return null;
    },
  });

  /** @throws `Fault` `store_unavailable` if posts to the channel cannot be received */
  #watch(organizationId: EntityId, channelId: EntityId, writer: Writer): Promise<void> {
    const topic = channelTopic(organizationId, channelId);
    const watched = this.#watched.get(topic) ?? this.#follow(organizationId, channelId, topic);
    const { writers } = watched;
    // Moves a writer that types again to the end. Redis shows no more either, and ids of agents are any text.
    writers.delete(writer.id);
    writers.set(writer.id, writer);
    if (writers.size > MAX_TYPING) writers.delete(String(writers.keys().next().value));
    clearTimeout(watched.expiry);
    watched.expiry = setTimeout(watched.stop, TYPING_TTL_MS).unref();
    return within(SUBSCRIBE_TIMEOUT_MS, watched.listening, () => storeUnavailable('Redis'));
  }

  #follow(organizationId: EntityId, channelId: EntityId, topic: string): Watched {
    const { promise: listening, resolve: onListening } = Promise.withResolvers<void>();
    const writers = new Map<string, Writer>();
    const subscription = this.#topics.subscribe(topic, {
      onListening,
      onInterrupted: () => undefined,
      onMessage: (message) => {
        const ended = [...new Set(sendersIn(message, writers))]
          .map((id) => writers.get(id))
          .filter((one) => one !== undefined);
        if (ended.length === 0) return;
        for (const { id } of ended) writers.delete(id);
        if (writers.size === 0) watched.stop();
        this.#end(organizationId, channelId, ended).catch(() => undefined);
      },
    });
    const watched: Watched = {
      writers,
      listening,
      expiry: undefined,
      stop: () => {
        clearTimeout(watched.expiry);
        subscription.stop();
        this.#watched.delete(topic);
      },
    };
    this.#watched.set(topic, watched);
    return watched;
  }
}

/** The ids of the senders of the posts in a message: the identity that is shown, and the principal that has posted. */
function sendersIn(message: Buffer, writers: ReadonlyMap<string, Writer>): string[] {
  return decodeLiveMessage(message).flatMap((item) => {
    if (item.kind !== 'event' || !writers.keys().some((id) => item.json.includes(id))) return [];
    const frame = postedFrame.safeParse(JSON.parse(item.json.toString())).data;
    if (frame === undefined) return [];
    const { user_id: userId, agent_id: agentId } = frame.data.participant;
    return [userId, agentId, frame.actor.id].filter((id) => typeof id === 'string');
  });
}

function valueOf({ type, id }: Writer, typing: boolean): { name: string; json: string } {
  return { name: id, json: JSON.stringify({ type, id, typing }) };
}
