import { Fault } from '#libs/kernel/faults.ts';
import { FRAME_FLAG } from '#libs/platform/live/index.ts';
import { textFrame } from '#libs/platform/websocket/index.ts';
import type { Connection, ConnectionOwner } from '#libs/platform/websocket/index.ts';

import { ChannelListener } from './channel-listener.ts';
import { decodeClientFrame, encodeFrame, PING, PONG } from './frames.schemas.ts';
import type { CommandFrame, FrameRefusal, Include, ResumeFrame, ServerFrame } from './frames.schemas.ts';
import type { LiveChannel } from './live-channel.ts';
import { CLOSE, HEARTBEAT_MS, MAX_CLIENT_FRAME_BYTES, MAX_CLIENT_FRAMES_PER_MINUTE, PROTOCOL } from './protocol.ts';
import type { CloseCode } from './protocol.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Grant, LiveCommandOutcome } from './realtime.ports.ts';

const PING_FRAME = textFrame(PING);
const PONG_FRAME = textFrame(PONG);
const MINUTE = 60;

/**
 * One websocket of a client, as a state machine: `opening` until the channel is heard, `greeted` until the
 * client has said from where on it wants the events, then `following` it to its end.
 */
export class SocketSession extends ChannelListener implements ConnectionOwner {
  grant: Grant;
  readonly #number: number;
  readonly #node: RealtimeNode;
  readonly #connection: Connection;
  #phase: 'opening' | 'greeted' | 'following' = 'opening';
  #include = 0;
  #channel: LiveChannel | null = null;
  /** What came before the hello. */
  #early: Buffer[] | null = null;
  #heard = true;
  #frames = 0;
  #minuteFrom: number;
  #closing = false;
  #onGone: (() => void) | null = null;

  /** The connection is to be given this as its owner, and then to be told to {@link open}. */
  constructor(node: RealtimeNode, grant: Grant, connection: Connection) {
    super();
    this.#node = node;
    this.grant = grant;
    this.#number = node.nextSession();
    this.#minuteFrom = node.now;
    this.#connection = connection;
  }

  /** Names it in its hello, and to commands; unique. Put together when needed: there are many sessions. */
  get id(): string {
    return `${this.#node.id}-${this.#number}`;
  }

  get form(): 'websocket' {
    return 'websocket';
  }

  get include(): number {
    return this.#include;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  get unsent(): number {
    return this.#connection.unsent;
  }

  /** Greets once the channel is heard. */
  open(): void {
    this.#node.add(this);
    const { organizationId, channelId } = this.grant;
    const channel = this.#node.channels.openOne(organizationId, channelId);
    if (channel === null) void this.#openChannel();
    else this.#greet(channel);
  }

  async #openChannel(): Promise<void> {
    const { organizationId, channelId } = this.grant;
    try {
      const channel = await this.#node.channels.open(organizationId, channelId);
      if (!this.isOpen) return;
      if (channel === null) this.close(CLOSE.channelGone, 'There is no such channel');
      else this.#greet(channel);
    } catch (error) {
      this.#fail(error, 'a channel could not be opened');
    }
  }

  #greet(channel: LiveChannel): void {
    this.#channel = channel;
    // What is the same for many is held once.
    const { organizationId, channelId } = channel;
    this.grant = { ...this.grant, organizationId, channelId, scopes: this.#node.shared(this.grant.scopes) };
    this.#phase = 'greeted';
    channel.keepFor(this);
    this.#send({
      frame: 'hello',
      protocol: PROTOCOL,
      session_id: this.id,
      channel_id: this.grant.channelId,
      head: channel.head,
      heartbeat_ms: HEARTBEAT_MS,
      max_frame_bytes: MAX_CLIENT_FRAME_BYTES,
    });
    this.#node.await(this);
    const early = this.#early ?? [];
    this.#early = null;
    for (const message of early) this.#read(message);
  }

  onTooLate(): void {
    this.close(CLOSE.protocol, 'No resume came');
  }

  // --- What the client sends ---

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

  /** Counts what comes in; whatever it is, it shows that the client is there. */
  #admit(): boolean {
    if (!this.isOpen) return false;
    this.#heard = true;
    const { now } = this.#node;
    if (now - this.#minuteFrom >= MINUTE) {
      this.#frames = 0;
      this.#minuteFrom = now;
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
        return this.#node.track(this.#run(frame));
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
    this.#node.begun(this);
    this.#include = maskOf(include);
    this.position = after ?? channel.head;
    if (this.position <= channel.head) channel.join(this);
    else void this.#resumeBeyond(channel, this.position);
  }

  /** What another process has told already, this one may not have heard yet. */
  async #resumeBeyond(channel: LiveChannel, after: number): Promise<void> {
    try {
      if (await channel.reaches(after)) {
        if (this.isOpen) channel.join(this);
        return;
      }
      this.#refuse({ code: 'invalid_resume', detail: `The channel has not come to ${after} yet` });
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
    if (this.#node.isStopping)
      return { ok: false, code: 'stopping', detail: 'This process is stopping', retryAfter: 2 };
    try {
      return await this.#node.commands.run(this.grant, command, {
        id: this.id,
        isArchived: this.#channel?.isArchived === true,
      });
    } catch (error) {
      this.#node.warn(error, 'a command failed');
      return { ok: false, code: 'internal', detail: 'Internal Server Error' };
    }
  }

  // --- What the client is sent ---

  write(frames: Buffer): void {
    this.#connection.write(frames);
  }

  async drained(): Promise<void> {
    await this.#connection.drained();
    // Whoever reads is there, though the ping may still be behind much else.
    this.#heard = true;
  }

  caughtUp(seq: number): void {
    this.#send({ frame: 'caught_up', seq });
  }

  beat(): void {
    // The first frame is the hello, however long the channel takes to open.
    if (this.#phase === 'opening') return;
    this.#heard = false;
    this.write(PING_FRAME);
  }

  checkBeat(): void {
    if (!this.#heard) this.close(CLOSE.noPong, 'No pong came');
  }

  #send(frame: ServerFrame): void {
    this.write(textFrame(encodeFrame(frame)));
  }

  // --- The end ---

  #fail(error: unknown, message: string): void {
    this.#node.warn(error, message);
    this.close(CLOSE.fault, error instanceof Fault ? error.message : 'Internal error');
  }

  close(code: CloseCode, reason: string): void {
    if (this.isOpen) this.#node.metrics.closed(code);
    this.#closing = true;
    this.#leave();
    this.#connection.end(code, reason);
  }

  cut(): void {
    this.#connection.terminate();
  }

  closed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onGone = resolve;
    });
  }

  onClosed(code: number): void {
    this.#leave();
    this.#node.remove(this);
    if (!this.#closing) this.#node.metrics.closed(code);
    this.#onGone?.();
  }

  #leave(): void {
    this.#channel?.leave(this);
    this.#node.begun(this);
  }
}

const FLAG_OF: Readonly<Record<Include, number>> = {
  nested: FRAME_FLAG.nested,
  incomplete: FRAME_FLAG.incomplete,
  ephemeral: FRAME_FLAG.ephemeral,
};

export function maskOf(include: readonly Include[]): number {
  return include.reduce((mask, one) => mask | FLAG_OF[one], 0);
}
