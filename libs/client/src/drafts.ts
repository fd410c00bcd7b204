import type { DeltaFrame, SnapshotFrame } from './frames.ts';

/** The text so far of an interaction that is being written. */
export interface Draft {
  readonly interactionId: string;
  /** The whole text so far. */
  readonly text: string;
  /** What the last frame appended; null if it replaced the whole text. */
  readonly added: string | null;
}

/**
 * Texts of answers that are being written. A delta applies only at its offset. After a lost delta the text is unknown
 * until the server sends it whole; until then nothing is shown.
 */
export class Drafts {
  readonly #texts = new Map<string, string>();

  get texts(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** @returns null if the text before the delta is not known */
  append({ interaction_id: interactionId, offset, text: added }: DeltaFrame): Draft | null {
    const held = offset === 0 ? '' : this.#texts.get(interactionId);
    // Offset 0 starts a new attempt and replaces the known text.
    if (held === undefined || held.length !== offset) {
      this.#texts.delete(interactionId);
      return null;
    }
    const text = held + added;
    this.#texts.set(interactionId, text);
    return { interactionId, text, added };
  }

  replace({ interaction_id: interactionId, text }: SnapshotFrame): Draft {
    this.#texts.set(interactionId, text);
    return { interactionId, text, added: null };
  }

  /** The interaction has completed or failed: its event has the final text. */
  end(interactionId: string): void {
    this.#texts.delete(interactionId);
  }
}
