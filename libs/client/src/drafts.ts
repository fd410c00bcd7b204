import type { DeltaFrame, SnapshotFrame } from './frames.ts';

/** The text of an interaction that is being written, as far as it has come. */
export interface Draft {
  readonly interactionId: string;
  /** All of it. */
  readonly text: string;
  /** What the last frame added at the end; null when it replaced everything. */
  readonly added: string | null;
}

/**
 * Texts of answers while they are written. A delta applies only where it belongs; after a lost one the text
 * is unknown until the server sends it whole, and it is better to show nothing than something else.
 */
export class Drafts {
  readonly #texts = new Map<string, string>();

  get texts(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** @returns null when the delta belongs behind text that is not held */
  append({ interaction_id: interactionId, offset, text: added }: DeltaFrame): Draft | null {
    const held = offset === 0 ? '' : this.#texts.get(interactionId);
    // From the beginning once more: what is held was of another try.
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

  /** The interaction is complete, or has failed: what counts is what the event says. */
  end(interactionId: string): void {
    this.#texts.delete(interactionId);
  }
}
