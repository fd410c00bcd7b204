// Groups and their checkpoints on disk, beside the events.
import { createHash } from 'node:crypto';
import type { DurableKeyValue } from '../log/event-log.ts';
import { parseGroupRecord } from './group-settings.ts';
import type { GroupName, GroupRecord } from './group-settings.ts';

const GROUPS = 'persistent-subscriptions/group/';
const CHECKPOINTS = 'persistent-subscriptions/checkpoint/';

/** Everything resolves when it is on disk. */
export class GroupStore {
  #keyValue: DurableKeyValue;

  constructor(keyValue: DurableKeyValue) {
    this.#keyValue = keyValue;
  }

  all(): GroupRecord[] {
    return this.#keyValue
      .entries(GROUPS)
      .map(({ value }) => parseGroupRecord(JSON.parse(Buffer.from(value).toString())));
  }

  put(record: GroupRecord): Promise<void> {
    return this.#keyValue.put(GROUPS + keyOf(record), Buffer.from(JSON.stringify(record)));
  }

  /** Forgets the group and its checkpoint. */
  async delete(name: GroupName): Promise<void> {
    await this.#keyValue.delete(GROUPS + keyOf(name));
    await this.#keyValue.delete(CHECKPOINTS + keyOf(name));
  }

  /** The last offset (revision or position) up to which everything is handled. */
  checkpoint(name: GroupName): number | undefined {
    const value = this.#keyValue.get(CHECKPOINTS + keyOf(name));
    if (!value) return undefined;
    const offset = Number(Buffer.from(value).toString());
    if (!Number.isSafeInteger(offset))
      throw new Error(`the checkpoint of ${name.source}::${name.group} is not a number`);
    return offset;
  }

  putCheckpoint(name: GroupName, offset: number): Promise<void> {
    return this.#keyValue.put(CHECKPOINTS + keyOf(name), Buffer.from(String(offset)));
  }
}

/** Names may be longer than a key. */
function keyOf({ source, group }: GroupName): string {
  return createHash('sha256')
    .update(JSON.stringify([source, group]))
    .digest('hex');
}
