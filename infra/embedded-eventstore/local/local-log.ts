// The event store in a thread of this process, as this process calls it: without gRPC, one message for each iteration of the
// event loop.
import type { MessagePort } from 'node:worker_threads';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import type { Direction, EmbeddedLog, EmbeddedMember, EmbeddedMembership } from '#libs/platform/embedded-log/index.ts';
import { Fields } from '#libs/platform/protobuf/index.ts';
import { StoredEvent } from '../log/stored-event.ts';
import { StreamChanges } from '../log/stream-changes.ts';
import type { Call, FromStore, LocalCalls, PageBytes } from './messages.ts';

/** How long an acknowledgement waits for a call that it can go with. */
const ACKNOWLEDGE_MS = 50;
/** Streams whose ends are remembered. */
const MAX_ENDS = 10_000;

type Waiting = { resolve(result: never): void; reject(error: Error): void };
type Result<Method extends keyof LocalCalls> = Awaited<ReturnType<LocalCalls[Method]>>;

/**
 * Outlives the thread: `attach` connects it with the next one.
 *
 * Guarantees: calls reach the store in their order. A call that was made while the thread lived, and that it did not
 * answer, rejects when it ends; what became of it is unknown. Omissions: no deadlines.
 */
export class LocalLog implements EmbeddedLog {
  end = 0;
  #port: MessagePort | undefined;
  #calls: Call[] = [];
  #lastId = 0;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<() => void>();
  readonly #members = new Map<number, EmbeddedMember>();
  /** Ids of events that are not acknowledged to the store yet, by member. */
  readonly #acknowledged = new Map<number, string[]>();
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  #isSending = false;
  /** Undefined until the thread has sent it. */
  #changes: StreamChanges | undefined;
  /** The first revision that a stream did not have when it was read, and its counter before that. */
  readonly #ends = recentlyUsed<string, { readonly next: number; readonly change: number }>(MAX_ENDS);

  get isOpen(): boolean {
    return this.#port !== undefined;
  }

  /** The port's other end is served by `serveLocal`. */
  attach(port: MessagePort): void {
    // The end of the former thread may not have been noticed yet.
    if (this.#port !== undefined) this.#detach(this.#port);
    this.#port = port;
    port.on('message', (message: readonly FromStore[]) => {
      for (const item of message) this.#settle(item);
      // In the next iteration of the event loop: in this one, the process learns what its acknowledged appends have written.
      setImmediate(() => this.#port === port && this.#publish(message));
    });
    port.on('close', () => this.#detach(port));
    // From now on, the store publishes its end.
    port.postMessage([]);
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  readonly append = this.#calling('append');
  readonly groups = this.#calling('groups');
  readonly createGroup = this.#calling('createGroup');
  readonly updateGroup = this.#calling('updateGroup');
  readonly deleteGroup = this.#calling('deleteGroup');
  readonly parked = this.#calling('parked');
  readonly replayParked = this.#calling('replayParked');

  async readStream(stream: string, from: number | 'end', direction: Direction, limit: number) {
    const change = this.#changes?.of(stream);
    const answer = await this.#call('readStream', [stream, from, direction, limit]);
    const page = { ...pageOf(answer), status: answer.status };
    const isEnd = page.status === 'exists' && direction === 'forwards' && page.next === undefined;
    if (isEnd && from !== 'end' && change !== undefined) {
      this.#ends.set(stream, { next: (page.events.at(-1)?.revision ?? from - 1) + 1, change });
    }
    return page;
  }

  isEnd(stream: string, from: number): boolean {
    const end = this.#ends.get(stream);
    return end !== undefined && from >= end.next && this.#changes?.of(stream) === end.change;
  }

  async readAll(from: number | 'end', direction: Direction, limit: number) {
    return pageOf(await this.#call('readAll', [from, direction, limit]));
  }

  async readPositions(positions: readonly number[]) {
    return pageOf(await this.#call('readPositions', [positions])).events;
  }

  /** Resolves when the member has joined; it may get deliveries before. */
  async join(name: string, bufferSize: number, member: EmbeddedMember): Promise<EmbeddedMembership> {
    const number = ++this.#lastId;
    this.#members.set(number, member);
    try {
      await this.#call('join', [number, name, bufferSize]);
    } catch (error) {
      this.#members.delete(number);
      throw error;
    }
    return {
      acknowledge: (id) => this.#acknowledge(number, id, bufferSize),
      park: (id, reason) => this.#send([0, 'park', [number, id, reason]]),
      leave: () => {
        this.#members.delete(number);
        this.#send([0, 'leave', [number]]);
      },
    };
  }

  #calling<Method extends keyof LocalCalls>(method: Method) {
    return (...args: Parameters<LocalCalls[Method]>) => this.#call(method, args);
  }

  #call<Method extends keyof LocalCalls>(
    method: Method,
    args: Parameters<LocalCalls[Method]>,
  ): Promise<Result<Method>> {
    if (this.#port === undefined) return Promise.reject(new Error('the thread of the event store does not run'));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send([id, method, args]);
    });
  }

  /** Acknowledgements go with the next call: a message of their own would wake the thread once more for each event. */
  #acknowledge(member: number, id: string, bufferSize: number): void {
    const ids = this.#acknowledged.get(member) ?? [];
    this.#acknowledged.set(member, ids);
    if (ids.push(id) >= bufferSize / 2) return this.#sendSoon();
    this.#acknowledgeTimer ??= setTimeout(() => this.#sendSoon(), ACKNOWLEDGE_MS).unref();
  }

  #send(call: Call): void {
    this.#calls.push(call);
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    this.#isSending = false;
    const acknowledged = [...this.#acknowledged].map(([member, ids]): Call => [0, 'acknowledge', [member, ids]]);
    const calls = [...acknowledged, ...this.#calls];
    this.#calls = [];
    this.#acknowledged.clear();
    if (calls.length > 0) this.#port?.postMessage(calls);
  }

  #settle(item: FromStore): void {
    const [kind, id, value] = item;
    if (kind !== 'result' && kind !== 'error') return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (kind === 'result') waiting?.resolve(value as never);
    else waiting?.reject(new Error(value));
  }

  #publish(message: readonly FromStore[]): void {
    const before = this.end;
    for (const item of message) {
      if (item[0] === 'end') this.end = item[1];
      else if (item[0] === 'changes') this.#changes = new StreamChanges(item[1]);
      else if (item[0] === 'delivery') this.#members.get(item[1])?.onDelivery(item[2], item[3]);
      else if (item[0] === 'dropped') this.#members.get(item[1])?.onDropped(new Error(item[2]));
    }
    if (this.end !== before) this.#changed();
  }

  #detach(port: MessagePort): void {
    if (this.#port !== port) return;
    this.#port = undefined;
    this.#calls = [];
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    this.end = 0;
    this.#changes = undefined;
    this.#ends.clear();
    const ended = new Error('the thread of the event store ended');
    for (const { reject } of this.#waiting.values()) reject(ended);
    this.#waiting.clear();
    for (const member of this.#members.values()) member.onDropped(ended);
    this.#members.clear();
    this.#acknowledged.clear();
    this.#changed();
  }
}

function pageOf({ bytes, next }: PageBytes) {
  const events: StoredEvent[] = [];
  const fields = new Fields(Buffer.from(bytes.buffer));
  while (fields.next()) events.push(new StoredEvent(fields.bytes()));
  return { events, next };
}
