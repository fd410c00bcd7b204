// The parked messages of a group: links in a separate stream. A replay delivers them again. The stream is truncated
// when they are handled, so a crash during a replay loses none.
import { randomUUID } from 'node:crypto';
import type { EventLog } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { parkedStreamOf, type GroupName } from './group-settings.ts';
import type { Message } from './message.ts';

const PAGE = 128;

export class ParkedMessages {
  readonly stream: string;
  #log: EventLog;
  /** A replay has returned all messages before this revision. */
  #replayedBefore = 0;
  #unhandled = new Set<number>();
  #truncating: Promise<void> | undefined;
  #truncatedBefore = 0;

  constructor(log: EventLog, name: GroupName) {
    this.#log = log;
    this.stream = parkedStreamOf(name);
  }

  /** Number of messages that no replay has returned. */
  get count(): number {
    const request = { stream: this.stream, from: this.#replayedBefore, direction: 'forwards', limit: 1 } as const;
    const first = this.#log.readStream(request).events[0]?.revision;
    const last = this.#log.streamInfo(this.stream).lastRevision;
    return first === undefined || last === undefined ? 0 : last - first + 1;
  }

  /** Resolves when it is on disk. @throws LogWriteError (rejects) */
  async park(message: Message, reason: string): Promise<void> {
    const record = message.event ?? message.link;
    if (!record) return;
    // A link without a target is parked as a link.
    const target = message.event ? `${record.revision}@${record.stream}` : record.data.toString('utf8');
    const offset = message.kind === 'read' ? message.offset : message.parkedRevision;
    const metadata = { added: new Date().toISOString(), reason, subscriptionEventNumber: offset };
    await this.#append(this.stream, '$>', 'application/octet-stream', Buffer.from(target), metadata);
  }

  /** The messages before revision `stopAt` of the parked stream, without those of earlier replays. */
  replay(stopAt: number | undefined): Message[] {
    const messages: Message[] = [];
    let from: number | undefined = this.#replayedBefore;
    while (from !== undefined) {
      const page = this.#log.readStream({ stream: this.stream, from, direction: 'forwards', limit: PAGE });
      for (const link of page.events) {
        if (stopAt !== undefined && link.revision >= stopAt) return messages;
        messages.push(this.#toMessage(link));
      }
      from = page.next;
    }
    return messages;
  }

  /** Called once for each message of a replay. */
  handled(parkedRevision: number): void {
    this.#unhandled.delete(parkedRevision);
    this.#truncating ??= this.#truncate().finally(() => {
      this.#truncating = undefined;
    });
  }

  /** Waits for writes under way. */
  async stop(): Promise<void> {
    await this.#truncating;
  }

  #toMessage(link: StoredEvent): Message {
    this.#replayedBefore = link.revision + 1;
    this.#unhandled.add(link.revision);
    const event = this.#log.resolveLink(link);
    return { kind: 'replayed', id: link.id, event, link, retryCount: 0, parkedRevision: link.revision };
  }

  /** The next write covers all messages handled during the current one. */
  async #truncate(): Promise<void> {
    for (;;) {
      const before = Math.min(this.#replayedBefore, ...this.#unhandled);
      if (before <= this.#truncatedBefore) return;
      const data = Buffer.from(JSON.stringify({ $tb: before }));
      try {
        await this.#append(`$$${this.stream}`, '$metadata', 'application/json', data);
      } catch {
        // The next handled message tries again; at worst a replay after a restart returns them once more.
        return;
      }
      this.#truncatedBefore = before;
    }
  }

  async #append(stream: string, type: string, contentType: string, data: Buffer, metadata?: object): Promise<void> {
    const bytes = metadata ? Buffer.from(JSON.stringify(metadata)) : Buffer.alloc(0);
    const event = { id: randomUUID(), type, contentType, data, metadata: bytes };
    const outcome = await this.#log.append({ stream, expected: 'any', events: [event] });
    if (outcome.kind !== 'written') throw new Error(`${stream} could not be written: ${outcome.kind}`);
  }
}
