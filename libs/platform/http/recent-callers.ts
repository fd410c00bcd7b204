import type { EntityId } from '#libs/kernel/ids.ts';

/** A caller counts as active for this long after its last request. */
const ACTIVE_MS = 1_000;

/** Whether other organizations than one are sending requests to this process. */
export class RecentCallers {
  #last: { readonly organizationId: EntityId; atMs: number } | null = null;
  /** When the last request of another organization than the last one came. */
  #otherAtMs = -Infinity;

  note(organizationId: EntityId, nowMs = performance.now()): void {
    if (this.#last?.organizationId === organizationId) {
      this.#last.atMs = nowMs;
      return;
    }
    this.#otherAtMs = this.#last?.atMs ?? -Infinity;
    this.#last = { organizationId, atMs: nowMs };
  }

  hasOthersThan(organizationId: EntityId, nowMs = performance.now()): boolean {
    if (this.#last === null) return false;
    const atMs = this.#last.organizationId === organizationId ? this.#otherAtMs : this.#last.atMs;
    return nowMs - atMs < ACTIVE_MS;
  }
}
