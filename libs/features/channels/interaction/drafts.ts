import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import {
  conflict,
  type HttpApp,
  mayNotActAs,
  notFound,
  refuseIfMatch,
  routesTagged,
  sendJson,
} from '#libs/platform/http/index.ts';
import {
  deltaJson,
  draftKey,
  FRAME_FLAG,
  channelTopic,
  snapshotJson,
  type LiveValue,
} from '#libs/platform/live/index.ts';
import type { EntityReader } from '#libs/platform/readmodel/index.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { interactionId, type InteractionRef } from './interaction.id.ts';
import { mayWriteAs, type Sender, type Writer } from './interaction.ts';
import { OF_INTERACTION, requireInteractionRef } from './interaction.requests.ts';
import { draftSchema, interactionParams, writeDeltaBody } from './interaction.schemas.ts';
import { interactionOf } from './reads/resource.ts';
import { CHANNEL, channelKeys, draftKeys } from '../channel.keys.ts';

/** TTL of a draft after its last change. */
const DRAFT_TTL_MS = 5 * 60 * 1000;
/** Size in UTF-8. */
const MAX_DRAFT_BYTES = 1024 * 1024;

const ROOT_FLAGS = FRAME_FLAG.incomplete;
const NESTED_FLAGS = FRAME_FLAG.incomplete | FRAME_FLAG.nested;

/** Text that is appended to a draft. */
interface Delta {
  /** Expected length of the draft in UTF-16 code units; null replaces the draft. */
  readonly offset: number | null;
  readonly text: string;
}

type DraftResult =
  /** Length of the draft in UTF-16 code units. */
  | { readonly ok: true; readonly length: number }
  | { readonly ok: false; readonly reason: 'not_found' | 'not_the_sender' | 'complete_already' | 'too_long' }
  | { readonly ok: false; readonly reason: 'wrong_offset'; readonly length: number };

const OUTCOMES = new Map([
  [-1, 'complete_already'],
  [-2, 'not_found'],
  [-3, 'too_long'],
] as const);

const putReply = z.tuple([z.int(), z.int()]);
const allReply = z.array(z.string());

/** Cached senders, which never change. */
const MAX_SENDERS = 10_000;

/**
 * Drafts: unfinished texts of incomplete interactions. Redis keeps them for {@link DRAFT_TTL_MS} and publishes each change;
 * completing the interaction deletes its draft. A draft does not become content: completing sets that.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class Drafts {
  readonly #functions: FunctionLibrary;
  readonly #redis: Platform['redis'];
  readonly #reader: Pick<EntityReader, 'isBehind'>;
  readonly #senders = recentlyUsed<string, Sender>(MAX_SENDERS);

  constructor({ redis, reader }: Pick<Platform, 'redis'> & { readonly reader: Pick<EntityReader, 'isBehind'> }) {
    this.#functions = new FunctionLibrary(redis, new URL('./reads/lua/drafts.lua', import.meta.url));
    this.#redis = redis;
    this.#reader = reader;
  }

  /** Appends to a draft or replaces it. @param writer must be allowed to write as the sender of the interaction */
  async put(organizationId: EntityId, ref: InteractionRef, delta: Delta, writer: Writer): Promise<DraftResult> {
    const put = async (): Promise<DraftResult> => {
      // An operator may write as any sender, and the function finds out whether there is such an interaction.
      if (writer !== 'operator') {
        const sender = await this.#senderOf(organizationId, ref);
        if (sender === null) return { ok: false, reason: 'not_found' };
        if (!mayWriteAs(writer, sender)) return { ok: false, reason: 'not_the_sender' };
      }
      return this.#put(organizationId, ref, delta);
    };
    const result = await put();
    if (result.ok || result.reason !== 'not_found') return result;
    // Read models that are being rebuilt may not have the interaction yet.
    if (!(await this.#reader.isBehind(CHANNEL, organizationId, ref.channelId))) return result;
    return put();
  }

  /** The drafts of a channel as snapshot frames. */
  async current(organizationId: EntityId, channelId: EntityId): Promise<LiveValue[]> {
    return (await this.#all(organizationId, channelId)).map(({ sequence, flags, text }) => {
      const id = interactionId({ channelId, sequence });
      return { flags, key: draftKey(id), json: snapshotJson(id, text) };
    });
  }

  /** The draft of an interaction; empty if it has none. */
  async textOf(organizationId: EntityId, { channelId, sequence }: InteractionRef): Promise<string> {
    const drafts = await this.#all(organizationId, channelId);
    return drafts.find((one) => one.sequence === sequence)?.text ?? '';
  }

  async #all(organizationId: EntityId, channelId: EntityId) {
    const { lengths, textPrefix } = draftKeys(organizationId, channelId);
    const call = { name: 'parley_drafts_all_v1', keys: [lengths], args: [textPrefix] };
    const [reply] = await this.#functions.callAll([call]);
    const words = allReply.parse(reply);
    return Array.from({ length: words.length / 3 }, (_, index) => {
      const [sequence, flags, text = ''] = words.slice(3 * index, 3 * index + 3);
      return { sequence: Number(sequence) as ChannelSequence, flags: Number(flags), text };
    });
  }

  async #senderOf(organizationId: EntityId, { channelId, sequence }: InteractionRef): Promise<Sender | null> {
    const { documents } = channelKeys(organizationId, channelId);
    const name = `${documents} ${sequence}`;
    const known = this.#senders.get(name);
    if (known !== undefined) return known;
    const stored = await this.#redis.send(documents, (node) => node.hget(documents, String(sequence)));
    if (stored === null) return null;
    const { participant } = interactionOf(stored);
    this.#senders.set(name, participant);
    return participant;
  }

  async #put(organizationId: EntityId, ref: InteractionRef, { offset, text }: Delta): Promise<DraftResult> {
    const { channelId, sequence } = ref;
    const { lengths, textPrefix } = draftKeys(organizationId, channelId);
    const { index, documents } = channelKeys(organizationId, channelId);
    const id = interactionId(ref);
    const frame = offset === null ? snapshotJson(id, text) : deltaJson(id, offset, text);
    const [reply] = await this.#functions.callAll([
      {
        name: 'parley_draft_put_v1',
        keys: [
          `${textPrefix}${sequence}`,
          lengths,
          index('incomplete'),
          documents,
          channelTopic(organizationId, channelId),
        ],
        args: [
          sequence,
          offset ?? '',
          text,
          text.length,
          DRAFT_TTL_MS,
          MAX_DRAFT_BYTES,
          ROOT_FLAGS,
          NESTED_FLAGS,
          draftKey(id),
          frame,
        ],
      },
    ]);
    const [outcome, length] = putReply.parse(reply);
    if (outcome === 1) return { ok: true, length };
    const reason = OUTCOMES.get(outcome as -1 | -2 | -3);
    return reason === undefined ? { ok: false, reason: 'wrong_offset', length } : { ok: false, reason };
  }
}

const { writes } = routesTagged('interactions');

/** Declares the route that appends to drafts. */
export function draftRoutes(app: HttpApp, drafts: Drafts): void {
  app.post(
    '/api/v1/interactions/:interaction_id/deltas',
    {
      preHandler: refuseIfMatch,
      ...writes(
        {
          operationId: 'writeInteractionDelta',
          summary: 'Append to the draft of an incomplete interaction, or replace it',
          description:
            'Publishes the text to subscribers of the channel. Drafts are ephemeral: reads do not return them, and they are ' +
            'deleted five minutes after the last delta, or when the interaction completes or fails.',
          params: interactionParams,
          body: writeDeltaBody,
          response: { 200: draftSchema },
        },
        OF_INTERACTION,
      ),
    },
    async (request, reply) => {
      const { offset, text } = request.body;
      const ref = requireInteractionRef(request.params.interaction_id);
      const { organizationId } = request.principal;
      const result = await drafts.put(organizationId, ref, { offset: offset ?? null, text }, request.principal);
      if (!result.ok) throw errorOf(result);
      const { length } = result;
      return sendJson(reply, JSON.stringify({ interaction_id: request.params.interaction_id, length }));
    },
  );
}

function errorOf(result: DraftResult & { readonly ok: false }): Error {
  switch (result.reason) {
    case 'not_found':
      return notFound();
    case 'not_the_sender':
      return mayNotActAs();
    case 'complete_already':
      return conflict('The interaction is complete', 'complete_already');
    case 'too_long':
      return conflict(`The text of an interaction has at most ${MAX_DRAFT_BYTES} bytes`, 'draft_too_long');
    case 'wrong_offset':
      return conflict(`The text has ${result.length} UTF-16 code units so far`, 'wrong_offset', undefined, {
        length: result.length,
      });
    default:
      return unreachable(result);
  }
}
