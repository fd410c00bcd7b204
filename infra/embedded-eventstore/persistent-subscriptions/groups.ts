// The groups of the server. Changes run one after another; each is on disk before it is acknowledged.
import type { FilterExpression } from '../grpc/filter.ts';
import { logSource, type EventLog } from '../log/event-log.ts';
import { Group } from './group.ts';
import {
  groupDoesNotExist,
  groupExists,
  type GroupName,
  type GroupRecord,
  type GroupSettings,
  GroupStore,
  keyOf,
  streamOfSource,
} from './group-settings.ts';

export class Groups {
  #log: EventLog;
  #store: GroupStore;
  #groups = new Map<string, Group>();
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(log: EventLog) {
    this.#log = log;
    this.#store = new GroupStore(log.keyValue);
    for (const record of this.#store.all()) this.#open(record);
  }

  /** @throws CallError when there is none */
  get(name: GroupName): Group {
    const group = this.#groups.get(keyOf(name));
    if (!group) throw groupDoesNotExist(name);
    return group;
  }

  list(source?: string): Group[] {
    const all = [...this.#groups.values()];
    return source === undefined ? all : all.filter(({ record }) => record.source === source);
  }

  /** @throws CallError (rejects) when the group exists */
  create(name: GroupName, settings: GroupSettings, filter: FilterExpression | undefined): Promise<void> {
    return this.#afterEarlier(async () => {
      if (this.#groups.has(keyOf(name))) throw groupExists(name);
      const record = { ...name, settings, ...(filter ? { filter } : {}), firstPlace: this.#firstPlace(name, settings) };
      await this.#store.put(record);
      this.#open(record);
    });
  }

  /** Drops the consumers, keeps checkpoint and filter. @throws CallError (rejects) when there is none */
  update(name: GroupName, settings: GroupSettings): Promise<void> {
    return this.#afterEarlier(async () => {
      const group = this.get(name);
      await group.stop();
      const record = { ...group.record, settings, firstPlace: this.#firstPlace(name, settings) };
      try {
        await this.#store.put(record);
      } catch (error) {
        this.#open(group.record);
        throw error;
      }
      this.#open(record);
    });
  }

  /** Drops the consumers; deletes the checkpoint and the parked messages, too. @throws CallError (rejects) when there is none */
  delete(name: GroupName): Promise<void> {
    return this.#afterEarlier(async () => {
      const group = this.get(name);
      await group.stop();
      try {
        await this.#log.deleteStream({ stream: group.parked.stream, expected: 'any' });
        await this.#store.delete(name);
      } catch (error) {
        this.#open(group.record);
        throw error;
      }
      this.#groups.delete(keyOf(name));
    });
  }

  /** Drops all consumers and loads every group from disk again. */
  restart(): Promise<void> {
    return this.#afterEarlier(async () => {
      await Promise.all(this.list().map((group) => group.stop()));
      this.#groups.clear();
      for (const record of this.#store.all()) this.#open(record);
    });
  }

  stop(): Promise<void> {
    return this.#afterEarlier(async () => {
      await Promise.all(this.list().map((group) => group.stop()));
    });
  }

  #open(record: GroupRecord): void {
    this.#groups.set(keyOf(record), new Group(this.#log, this.#store, record));
  }

  #firstPlace({ source }: GroupName, { startFrom }: GroupSettings): number {
    if (startFrom === 'start') return 0;
    return startFrom === 'end' ? logSource(this.#log, streamOfSource(source)).end() : startFrom;
  }

  #afterEarlier(change: () => Promise<void>): Promise<void> {
    const done = this.#lastChange.then(change, change);
    this.#lastChange = done;
    return done;
  }
}
