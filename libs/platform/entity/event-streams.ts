import type { FastifyReply, FastifyRequest } from 'fastify';

import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  beginEventStream,
  HttpError,
  lastSeenSequence,
  notFound,
  ConcurrencyLimit,
  type Principal,
  requireEventStreams,
  sendEventStreamHead,
  sequenceNotReached,
} from '#libs/platform/http/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import {
  CLOSE,
  EntityEventStream,
  type EventStream,
  type Grant,
  type LiveNode,
  type LiveSource,
  type LiveStream,
  type StreamRef,
} from '#libs/platform/live/index.ts';

/** Folds of streams at a time, for event streams that begin: frames may need the state before them. */
const FOLDS = 4;

/** The event streams of entities in this process, whose number is bounded. */
export class EventStreams {
  /** Created by the first event stream: its clock must not start in processes without one. */
  readonly #node: () => LiveNode;
  readonly folds = new FairSemaphore({ permits: FOLDS });
  readonly #limit = new ConcurrencyLimit({
    max: 5_000,
    maxOfKey: 100,
    refusal: () =>
      new HttpError(429, 'too_many_event_streams', 'Too many event streams are open', { 'retry-after': '5' }),
  });

  constructor(node: () => LiveNode) {
    this.#node = node;
  }

  /**
   * Answers with the events of an entity.
   *
   * @param admit called before the stream is opened. @throws HttpError
   * @throws as {@link sendEventStream}; HttpError 429
   */
  send(
    request: EventStreamRequest,
    reply: FastifyReply,
    { source, of, admit }: { readonly source: LiveSource; readonly of: StreamRef; readonly admit: () => Promise<void> },
  ): Promise<FastifyReply> {
    const { principal, memberChannel, server } = request;
    const node = this.#node();
    const open = async (after: number | undefined): Promise<LiveStream> => {
      await admit();
      this.#limit.takeUntilEnd(principal.keyId, reply.raw);
      return openLiveStream(node, source, of, after);
    };
    return sendEventStream(request, reply, open, (stream) => {
      const grant = grantFor(principal, memberChannel);
      const events = new EntityEventStream(node, { grant, stream, include: 0 }, reply.raw);
      const onClosing = (): void => events.close(CLOSE.restart, events.reasons.stopping);
      server.closing.addEventListener('abort', onClosing, { once: true });
      void events.closed().then(() => server.closing.removeEventListener('abort', onClosing));
      return events;
    });
  }
}

export type EventStreamRequest = FastifyRequest & { readonly query: { readonly after?: number | undefined } };

/**
 * Answers with the events of a stream as server-sent events, which continue until the client leaves.
 *
 * @param open the stream, as {@link openLiveStream} does
 * @param subscriberOf called for a stream that has, or may have, events after the client's position
 * @throws HttpError 406; ValidationFailure; the errors of `open`
 */
export async function sendEventStream(
  request: EventStreamRequest,
  reply: FastifyReply,
  open: (after: number | undefined) => Promise<LiveStream>,
  subscriberOf: (stream: LiveStream) => EventStream,
): Promise<FastifyReply> {
  requireEventStreams(request);
  const after = lastSeenSequence(request, request.query.after);
  const stream = await open(after);
  if (reply.raw.destroyed) return reply.hijack();
  const position = after ?? stream.head;
  // The only response after which a browser does not reconnect.
  if (stream.hasEnded && position >= stream.head) return reply.code(204).send();
  if (request.method === 'HEAD') return sendEventStreamHead(reply);
  beginEventStream(reply);
  subscriberOf(stream).open(position);
  return reply;
}

/**
 * A stream for a subscriber that begins after a sequence. It must join the stream in the same iteration of the event loop.
 *
 * @throws HttpError 404; ValidationFailure 422 for a sequence beyond the end; StreamGone; `Fault` `stopping`
 */
export async function openLiveStream(
  node: LiveNode,
  source: LiveSource,
  of: StreamRef,
  after: number | undefined,
): Promise<LiveStream> {
  if (node.isStopping) throw stopping();
  const stream = await node.streams.open(source, of);
  if (stream === null) throw notFound();
  if (after !== undefined && !(await stream.reaches(after))) throw sequenceNotReached(after);
  if (after !== undefined) await stream.refuseDeleted(after);
  // Meanwhile the node may have stopped, or the stream been closed.
  if (node.isStopping || !stream.isOpen) throw stopping();
  return stream;
}

function stopping(): Fault {
  return new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
}

/** @param channelId the channel that is followed, or in which a member was admitted */
export function grantFor(
  { organizationId, principalType, principalId, keyId, scopes, isMember, expiresAtMs }: Principal,
  channelId: EntityId | null,
): Grant {
  const principal = { organizationId, principalType, principalId, keyId, isMember, expiresAtMs };
  return { ...principal, channelId, scopes: [...scopes], takesPart: false };
}
