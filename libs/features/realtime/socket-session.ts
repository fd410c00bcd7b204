import { Fault } from '#libs/kernel/faults.ts';
import {
  CLOSE,
  type CloseCode,
  type ChannelGrant,
  HEARTBEAT_MS,
  type LiveStream,
  Subscriber,
  TICK_MS,
} from '#libs/platform/live/index.ts';
import { textFrame, type Connection, type ConnectionOwner } from '#libs/platform/websocket/index.ts';

import {
  type CommandFrame,
  decodeClientFrame,
  encodeFrame,
  type FrameRefusal,
  maskOf,
  MAX_CLIENT_FRAME_BYTES,
  MAX_CLIENT_FRAMES_PER_MINUTE,
  PING,
  PONG,
  PROTOCOL,
  RESUME_WAIT_MS,
  type ResumeFrame,
  type ServerFrame,
} from './frames.ts';
import type { LiveCommandOutcome } from './live-commands.ts';
import type { RealtimeNode } from './realtime-node.ts';

const PING_FRAME = textFrame(PING);
const PONG_FRAME = textFrame(PONG);
const MINUTE = 60;

/**
 * One websocket of a client, as a state machine: `opening` until its channel is open, `greeted` until the client has
 * sent its `resume`, then `following` the channel.
 */
export class SocketSession extends Subscriber implements ConnectionOwner {
  grant: ChannelGrant;
  readonly #number: number;
  readonly #node: RealtimeNode;
  readonly #connection: Connection;
  #phase: 'opening' | 'greeted' | 'following' = 'opening';
  #include = 0;
  #channel: LiveStream | null = null;
  /** Messages that arrived before the hello was sent. */
  #early: Buffer[] | null = null;
  /** A message has arrived since the last ping. */
  #isAlive = true;
  #frames = 0;
  #minuteStart: number;
  #resumeByTick = Number.POSITIVE_INFINITY;
  #isClosing = false;
  #onGone: (() => void) | null = null;

  /** The connection must have this as its owner before {@link open} is called. */
  constructor(node: RealtimeNode, grant: ChannelGrant, connection: Connection) {
    super();
    this.#node = node;
    this.grant = grant;
    this.#number = node.nextSession();
    this.#minuteStart = node.live.now;
    this.#connection = connection;
  }

  /** Unique; part of the hello and of commands. Computed, to save memory. */
  get id(): string {
    return `${this.#node.id}-${this.#number}`;
  }

  get format(): 'websocket' {
    return 'websocket';
  }

  get include(): number {
    return this.#include;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  get unsentBytes(): number {
    return this.#connection.unsentBytes;
  }

  /** Sends the hello once the channel is open. */
  open(): void {
    this.#node.live.add(this);
    const { organizationId, channelId } = this.grant;
    const channel = this.#node.openOne(organizationId, channelId);
    if (channel === null) void this.#openChannel();
    else this.#greet(channel);
  }

  async #openChannel(): Promise<void> {
    const { organizationId, channelId } = this.grant;
    try {
      const channel = await this.#node.open(organizationId, channelId);
      if (!this.isOpen) return;
      if (channel === null) this.close(CLOSE.ended, 'There is no such channel');
      else this.#greet(channel);
    } catch (error) {
      this.#fail(error, 'a channel could not be opened');
    }
  }

  #greet(channel: LiveStream): void {
    this.#channel = channel;
    // Shares the strings and scopes with other sessions, to save memory.
    const { organizationId, id: channelId } = channel;
    this.grant = { ...this.grant, organizationId, channelId, scopes: this.#node.shared(this.grant.scopes) };
    this.#phase = 'greeted';
    channel.keepFor(this);
    this.#send({
      frame: 'hello',
      protocol: PROTOCOL,
      session_id: this.id,
      channel_id: channelId,
      principal: { type: this.grant.principalType, id: this.grant.principalId },
      head: channel.head,
      heartbeat_ms: HEARTBEAT_MS,
      max_frame_bytes: MAX_CLIENT_FRAME_BYTES,
    });
    this.#resumeByTick = this.#node.live.now + RESUME_WAIT_MS / TICK_MS;
    const early = this.#early ?? [];
    this.#early = null;
    for (const message of early) this.#read(message);
  }

  override onTick(now: number): void {
    super.onTick(now);
    if (this.#resumeByTick < now) this.close(CLOSE.protocol, 'No resume came');
  }

  // --- Frames of the client ---

  onText(message: Buffer): void {
    if (!this.#admit()) return;
    if (this.#phase === 'opening') (this.#early ??= []).push(message);
    else this.#read(message);
  }

  onBinary(): void {
    this.close(CLOSE.notText, 'Frames are JSON texts');
  }

  onControl(): void {
    this.#admit();
  }

  /** Counts a message of any kind. @returns false if the connection is closed, or is closed here for too many messages */
  #admit(): boolean {
    if (!this.isOpen) return false;
    this.#isAlive = true;
    const { now } = this.#node.live;
    if (now - this.#minuteStart >= MINUTE) {
      this.#frames = 0;
      this.#minuteStart = now;
    }
    this.#frames += 1;
    if (this.#frames <= MAX_CLIENT_FRAMES_PER_MINUTE) return true;
    this.close(CLOSE.tooMany, `More than ${MAX_CLIENT_FRAMES_PER_MINUTE} frames in a minute`);
    return false;
  }

  #read(message: Buffer): void {
    if (!this.isOpen) return;
    const decoded = decodeClientFrame(message);
    if (!decoded.ok) return this.#refuse(decoded);
    const { frame } = decoded;
    switch (frame.frame) {
      case 'ping':
        return this.write(PONG_FRAME);
      case 'pong':
        return;
      case 'resume':
        return this.#resume(frame);
      case 'command':
        return this.#node.live.track(this.#run(frame));
    }
  }

  #refuse({ code, detail, id }: FrameRefusal): void {
    this.#send({ frame: 'error', ...(id !== undefined && { id }), code, detail });
    if (code === 'invalid_resume' && this.#phase === 'greeted') this.close(CLOSE.protocol, 'The resume is invalid');
  }

  #resume({ after, include = [] }: ResumeFrame): void {
    const channel = this.#channel;
    if (channel === null || this.#phase !== 'greeted') {
      return this.#send({ frame: 'error', code: 'already_resumed', detail: 'This socket has been resumed already' });
    }
    this.#phase = 'following';
    this.#resumeByTick = Number.POSITIVE_INFINITY;
    this.#include = maskOf(include);
    this.position = after ?? channel.head;
    if (this.position <= channel.head) channel.join(this);
    else void this.#resumeBeyond(channel, this.position);
  }

  /** Another node may have sent events that have not arrived here yet. */
  async #resumeBeyond(channel: LiveStream, after: number): Promise<void> {
    try {
      if (await channel.reaches(after)) {
        if (this.isOpen) channel.join(this);
        return;
      }
      this.#refuse({ code: 'invalid_resume', detail: `The channel has not reached ${after} yet` });
      this.close(CLOSE.protocol, 'The resume is invalid');
    } catch (error) {
      this.#fail(error, 'a resume could not be checked');
    }
  }

  async #run({ id, type, data }: CommandFrame): Promise<void> {
    const outcome = await this.#outcome({ id, type, data });
    if (outcome.ok) return this.#send({ frame: 'ack', id, seq: outcome.seq });
    const { code, detail, retryAfter } = outcome;
    this.#send({ frame: 'error', id, code, detail, ...(retryAfter !== undefined && { retry_after: retryAfter }) });
  }

  async #outcome(command: { id: string; type: string; data: unknown }): Promise<LiveCommandOutcome> {
    if (this.#node.live.isStopping)
      return { ok: false, code: 'stopping', detail: 'This process is stopping', retryAfter: 2 };
    try {
      const session = { id: this.id, hasEnded: this.#channel?.hasEnded === true };
      return await this.#node.commands.run(this.grant, command, session);
    } catch (error) {
      this.#node.live.warn(error, 'a command failed');
      return { ok: false, code: 'internal', detail: 'Internal Server Error' };
    }
  }

  // --- Frames of the server ---

  write(frames: Buffer): void {
    this.#connection.write(frames);
  }

  async drained(): Promise<void> {
    await this.#connection.drained();
    // A client that reads is alive, even if the ping is still behind many other frames.
    this.#isAlive = true;
  }

  caughtUp(sequence: number): void {
    this.#send({ frame: 'caught_up', seq: sequence });
  }

  ping(): void {
    // The hello must be the first frame. Until the client resumes, the deadline of the resume is the only one.
    if (this.#phase !== 'following') return;
    this.#isAlive = false;
    this.write(PING_FRAME);
  }

  checkPong(): void {
    if (!this.#isAlive) this.close(CLOSE.noPong, 'No pong came');
  }

  #send(frame: ServerFrame): void {
    this.write(textFrame(encodeFrame(frame)));
  }

  // --- Closing ---

  #fail(error: unknown, message: string): void {
    this.#node.live.warn(error, message);
    this.close(CLOSE.fault, error instanceof Fault ? error.message : 'Internal error');
  }

  close(code: CloseCode, reason: string): void {
    if (this.isOpen) this.#node.live.metrics.closed(code);
    this.#isClosing = true;
    this.#leave();
    this.#connection.end(code, reason);
  }

  destroy(): void {
    this.#connection.terminate();
  }

  closed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onGone = resolve;
    });
  }

  onClosed(code: number): void {
    this.#leave();
    this.#node.live.remove(this);
    if (!this.#isClosing) this.#node.live.metrics.closed(code);
    this.#onGone?.();
  }

  #leave(): void {
    this.#channel?.leave(this);
    this.#resumeByTick = Number.POSITIVE_INFINITY;
  }
}
