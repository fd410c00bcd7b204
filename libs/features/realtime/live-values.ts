import type { EntityId } from '#libs/kernel/ids.ts';

import type { LiveValue, LiveValues } from './realtime.ports.ts';

/**
 * The values of several sources together. Whoever asks in one turn of the event loop about one channel
 * shares the answer: when a thousand sockets come back to it, it is looked up once.
 */
export class JoinedLiveValues implements LiveValues {
  readonly #sources: readonly LiveValues[];
  readonly #turn = new Map<string, Promise<readonly LiveValue[]>>();

  constructor(sources: readonly LiveValues[]) {
    this.#sources = sources;
  }

  current(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]> {
    const name = `${organizationId} ${channelId}`;
    const known = this.#turn.get(name);
    if (known !== undefined) return known;
    // What is asked for later must be looked up later: it is to hold what was told until then.
    if (this.#turn.size === 0) setImmediate(() => this.#turn.clear());
    const values = this.#lookUp(organizationId, channelId);
    this.#turn.set(name, values);
    return values;
  }

  async #lookUp(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]> {
    const found = await Promise.all(this.#sources.map((source) => source.current(organizationId, channelId)));
    return found.flat();
  }
}
