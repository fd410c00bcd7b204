import type { EntityId } from '#libs/kernel/ids.ts';

import { annotated } from './interaction.annotations.ts';
import type { Annotations, Reader } from './interaction.annotations.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { interactionKeys } from './interactions.keys.ts';
import type { InteractionView } from './interactions.view.ts';

/** Whose channel is read, as of when, and for whom. */
export interface Reading {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly view: InteractionView;
  /** Null: as it is stored, without what was added. */
  readonly reader: Reader | null;
}

/** Interactions as one reader sees them: what is stored, with what was added to it. */
export class InteractionDocuments {
  readonly #annotations: Annotations;

  constructor(annotations: Annotations) {
    this.#annotations = annotations;
  }

  /**
   * In the order of `sequences`, null where there is none. Both reads travel together; where nothing was added,
   * what is stored is what is sent.
   *
   * @throws `Fault` `store_unavailable`
   */
  async of(
    { organizationId, channelId, view, reader }: Reading,
    sequences: readonly number[],
  ): Promise<(Buffer | null)[]> {
    const keys = interactionKeys(organizationId, channelId);
    if (reader === null) return view.documents(keys, sequences);
    const [documents, annotations] = await Promise.all([
      view.documents(keys, sequences),
      this.#annotations.of(organizationId, channelId, sequences, reader, view.end),
    ]);
    if (annotations.size === 0) return documents;
    return documents.map((document, index) => document && annotated(document, annotations.get(sequences[index] ?? 0)));
  }

  /** The bytes of an interaction that a command has answered with, with what was added to it before. */
  async annotate(
    organizationId: EntityId,
    { channelId, sequence }: InteractionPlace,
    document: Buffer,
    reader: Reader,
  ): Promise<Buffer> {
    const annotations = await this.#annotations.of(organizationId, channelId, [sequence], reader, Infinity);
    return annotated(document, annotations.get(sequence));
  }
}
