import type { ServerResponse } from 'node:http';

import type { FastifyRequest } from 'fastify';

import type { ChannelSequence, DomainEvent } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import { backoffMs, pause, within } from '#libs/platform/lifecycle/index.ts';
import {
  CLOSE,
  type CloseCode,
  decodeLiveMessage,
  entityTopic,
  type EventFrame,
  FRAME_FLAG,
  frameType,
} from '#libs/platform/live/index.ts';
import type { EntityRef } from '#libs/platform/readmodel/index.ts';
import type { TopicSubscription } from '#libs/platform/redis/index.ts';
import { drained, StalledWrites } from '#libs/platform/websocket/index.ts';

import { EntityLog, type LoggedType } from './entity-log.ts';
import type { EventStreams } from './event-streams.ts';

const LISTEN_TIMEOUT_MS = 5_000;
const HEARTBEAT_TICKS = 25;
/** A key that could not be verified for longer ends the stream. */
const MAX_UNVERIFIED_TICKS = 55;
/** Live frames that are kept for a client that reads slowly; later ones are read from the log. */
const MAX_DUE_BYTES = 256 * 1024;
const COMMENT = ':\n\n';

/**
 * The events of one entity for one client: missed ones from the log, then those of the topic.
 *
 * Guarantees: every event after its position, once and in order, whatever pub/sub loses, duplicates or reorders. A client
 * that reads slowly delays its own stream only, at a bounded memory.
 */
export class EntityEventStream<State, E extends DomainEvent> {
  readonly #streams: EventStreams;
  readonly #entity: EntityRef;
  readonly #request: FastifyRequest;
  readonly #log: EntityLog<State, E>;
  readonly #listening = Promise.withResolvers<void>();
  readonly #closed = new AbortController();
  readonly #heartbeatTick = Math.floor(Math.random() * HEARTBEAT_TICKS);
  readonly #subscription: TopicSubscription;
  readonly #release: () => void;
  #wake = Promise.withResolvers<void>();
  #response: ServerResponse | undefined;
  #stalled: StalledWrites | undefined;
  /** Sequence of the last event written. */
  #position = 0;
  /** Live frames that follow the position. */
  #due: EventFrame[] = [];
  #dueBytes = 0;
  /** Events may have been missed: the log has them. */
  #isBehind = false;
  /** The last event written is the entity's last one. */
  #hasEnded = false;
  #verifiedTick = 0;
  #isVerifying = false;
  #expiresAtMs: number | null;

  /**
   * Subscribes to the topic.
   *
   * @param request of the client, whose key is checked again every second
   * @throws HttpError 429 if too many streams are open
   */
  constructor(streams: EventStreams, type: LoggedType<State, E>, entity: EntityRef, request: FastifyRequest) {
    this.#streams = streams;
    this.#entity = entity;
    this.#request = request;
    this.#expiresAtMs = request.principal.expiresAtMs;
    this.#log = new EntityLog(streams.parts.store, type, entity);
    this.#release = streams.limit.take(request.principal.keyId);
    const topic = entityTopic(entity.category, entity.organizationId, entity.id);
    this.#subscription = streams.parts.topics.subscribe(topic, {
      onMessage: (message) => this.#onMessage(message),
      onListening: () => {
        this.#listening.resolve();
        this.#catchUp();
      },
      onInterrupted: () => undefined,
    });
  }

  /** @throws `Fault` `store_unavailable` */
  async listening(): Promise<void> {
    await within(LISTEN_TIMEOUT_MS, this.#listening.promise, () => storeUnavailable('redis'));
    // What came before is not missed: the position of the stream is read from now on.
    this.#isBehind = false;
  }

  /**
   * Starts to write. The stream ends when its client leaves, the entity ends, access is lost, or the server closes.
   *
   * @param response its headers must be written
   * @param position sequence of the last event seen
   * @param head of the entity, read after `listening` has resolved
   */
  begin(response: ServerResponse, position: number, head: ChannelSequence): void {
    const { closing } = this.#request.server;
    const onClosing = (): void => this.#close(CLOSE.restart, 'This process is stopping');
    this.#response = response;
    this.#stalled = new StalledWrites(response);
    this.#position = position;
    this.#isBehind ||= position < head;
    this.#verifiedTick = this.#streams.now;
    this.#streams.add(this);
    closing.addEventListener('abort', onClosing, { once: true });
    response.on('error', () => response.destroy());
    response.on('close', () => {
      closing.removeEventListener('abort', onClosing);
      this.#streams.remove(this);
      this.stop();
    });
    // Shows clients that wait for the first bytes that the stream is open.
    response.write(COMMENT);
    if (response.destroyed) this.stop();
    else if (closing.aborted) onClosing();
    else void this.#run();
  }

  /** Ends the subscription. */
  stop(): void {
    if (!this.#isOpen) return;
    this.#closed.abort();
    this.#subscription.stop();
    this.#release();
    this.#wake.resolve();
  }

  onTick(ticks: number): void {
    if (this.#stalled?.check() === true) this.#response?.destroy();
    else if (ticks % HEARTBEAT_TICKS === this.#heartbeatTick && this.#isOpen) this.#response?.write(COMMENT);
    if (this.#expiresAtMs !== null && this.#expiresAtMs <= Date.now()) {
      this.#close(CLOSE.accessLost, 'The key has expired');
    } else if (ticks - this.#verifiedTick > MAX_UNVERIFIED_TICKS) {
      this.#close(CLOSE.unverified, 'The key could not be verified');
    } else if (!this.#isVerifying) {
      void this.#verify(ticks);
    }
  }

  get #isOpen(): boolean {
    return !this.#closed.signal.aborted;
  }

  async #verify(ticks: number): Promise<void> {
    this.#isVerifying = true;
    try {
      const principal = await this.#request.server.reauthenticate(this.#request);
      if (principal === null) return this.#close(CLOSE.accessLost, 'The key has ended');
      this.#verifiedTick = ticks;
      this.#expiresAtMs = principal.expiresAtMs;
    } catch (error) {
      if (!(error instanceof Fault)) this.#warn(error, 'a key could not be verified');
    } finally {
      this.#isVerifying = false;
    }
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#isOpen;) {
      try {
        const frames = this.#takeDue();
        if (frames.length > 0) await this.#write(frames);
        else if (this.#isBehind) await this.#writeMissed();
        else if (this.#hasEnded) this.#close(CLOSE.ended, 'There are no more events');
        else await this.#woken();
        failures = 0;
      } catch (error) {
        if (!this.#isOpen) return;
        this.#warn(error, 'an event stream waits for the log');
        if (error instanceof StreamGone) return this.#close(CLOSE.eventsGone, error.message);
        // Others, such as an event that does not decode, would fail each time.
        if (!(error instanceof Fault)) return this.#close(CLOSE.fault, 'The events cannot be read');
        this.#isBehind = true;
        failures += 1;
        await pause(backoffMs(failures), this.#closed.signal);
      }
    }
  }

  async #writeMissed(): Promise<void> {
    const { signal } = this.#closed;
    this.#isBehind = false;
    for (let isLast = false; !isLast && this.#isOpen;) {
      const turn = { group: this.#entity.organizationId, signal };
      const page = await this.#streams.catchUps.run(() => this.#log.page(this.#position, signal), turn);
      await this.#write(page.frames);
      isLast = page.isLast;
    }
  }

  async #write(frames: readonly EventFrame[]): Promise<void> {
    const last = frames.at(-1);
    if (last === undefined || this.#response === undefined || !this.#isOpen) return;
    // The JSON has no line breaks, so it is one `data` line.
    const events = frames.map(({ sequence, json }) => `id: ${sequence}\nevent: ${frameType(json)}\ndata: ${json}\n\n`);
    this.#response.write(events.join(''));
    this.#position = last.sequence;
    this.#hasEnded = (last.flags & FRAME_FLAG.last) !== 0;
    await drained(this.#response);
  }

  async #woken(): Promise<void> {
    await this.#wake.promise;
    this.#wake = Promise.withResolvers();
  }

  #catchUp(): void {
    this.#isBehind = true;
    this.#wake.resolve();
  }

  #onMessage(message: Buffer): void {
    for (const item of decodeLiveMessage(message)) {
      if (item.kind === 'value') continue;
      const expected = (this.#due.at(-1)?.sequence ?? this.#position) + 1;
      if (item.sequence < expected) continue;
      if (item.kind === 'head' || item.sequence > expected || this.#dueBytes > MAX_DUE_BYTES) this.#catchUp();
      else this.#push({ sequence: item.sequence, flags: item.flags, json: item.json.toString() });
    }
  }

  #push(frame: EventFrame): void {
    this.#due.push(frame);
    this.#dueBytes += frame.json.length;
    this.#wake.resolve();
  }

  /** The frames that follow the position; none if the log has been read beyond them, or lacks some before them. */
  #takeDue(): readonly EventFrame[] {
    const frames = this.#due.filter(({ sequence }) => sequence > this.#position);
    this.#due = [];
    this.#dueBytes = 0;
    const [first] = frames;
    if (first === undefined || first.sequence === this.#position + 1) return frames;
    this.#isBehind = true;
    return [];
  }

  /** Sends the reason as an event of the type `close`, which clients do not mistake for an event of the entity. */
  #close(code: CloseCode, reason: string): void {
    if (!this.#isOpen) return;
    this.stop();
    this.#response?.end(`event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`);
  }

  #warn(error: unknown, message: string): void {
    this.#streams.parts.log.warn({ err: error, category: this.#entity.category, id: this.#entity.id }, message);
  }
}
