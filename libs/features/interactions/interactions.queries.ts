import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader, EntityReader } from '#libs/platform/readmodel/index.ts';

import type { ContentRole } from './interaction.content.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { interactionKeys } from './interactions.keys.ts';
import type { InteractionFacet, InteractionKeys } from './interactions.keys.ts';
import { sequenceOfChild } from './interactions.projection.ts';

/** What a list of a channel's interactions is narrowed to, and in which order it comes. */
export interface InteractionFilter {
  readonly contentRole?: ContentRole | undefined;
  readonly turnId?: string | undefined;
  /** Exclusive bounds. */
  readonly afterSequence?: number | undefined;
  readonly beforeSequence?: number | undefined;
  readonly order: 'asc' | 'desc';
  readonly includeIncomplete: boolean;
}

export interface InteractionPage {
  readonly items: readonly Buffer[];
  readonly total: number;
  readonly hasNext: boolean;
  /** Sequence that the next page starts after, in the order of the list. */
  readonly last: string | null;
}

/** More descendants than this are not shown below one interaction. */
const MAX_NESTED = 2_000;

/** Reads of interactions: ready bytes from the read model. All throw the faults of `EntityReader`. */
export class InteractionQueries {
  readonly #entities: EntityReader;
  readonly #collections: CollectionReader;

  constructor(entities: EntityReader, collections: CollectionReader) {
    this.#entities = entities;
    this.#collections = collections;
  }

  /**
   * The interaction, or null if there is none at that place, it is another organization's, or it is
   * incomplete and those are not asked for.
   */
  async interaction(
    organizationId: EntityId,
    { channelId, sequence }: InteractionPlace,
    { includeIncomplete }: { readonly includeIncomplete: boolean },
  ): Promise<Buffer | null> {
    const keys = interactionKeys(organizationId, channelId);
    const read = () =>
      Promise.all([
        this.#collections.fields(keys.documents, [sequence]),
        includeIncomplete ? [false] : this.#collections.contained(keys.index('incomplete'), [sequence]),
      ]);
    let [[found], [incomplete]] = await read();
    if (!found && (await this.#entities.isBehind(CHANNEL, organizationId, channelId))) {
      [[found], [incomplete]] = await read();
    }
    return found && incomplete !== true ? found : null;
  }

  /** All that hangs below a span, ordered by sequence. */
  async descendants(
    organizationId: EntityId,
    channelId: EntityId,
    spanId: string,
    { includeIncomplete }: { readonly includeIncomplete: boolean },
  ): Promise<Buffer[]> {
    const keys = interactionKeys(organizationId, channelId);
    const found = new Map<ChannelSequence, Buffer>();
    // A level of the tree at a time: as many round trips as it is deep, and no tree is deeper than 64.
    for (let parents = [spanId]; parents.length > 0 && found.size < MAX_NESTED;) {
      const members = (
        await this.#collections.withPrefixes(
          keys.children,
          parents.map((parent) => `${parent} `),
        )
      ).flat();
      const sequences = members.slice(0, MAX_NESTED - found.size).map(sequenceOfChild);
      const documents = await this.#documents(keys, sequences);
      parents = [];
      for (const [index, document] of documents.entries()) {
        const sequence = sequences[index];
        if (document === null || sequence === undefined) continue;
        found.set(sequence, document);
        parents.push(spanIdOf(document));
      }
    }
    const sequences = [...found.keys()].sort((a, b) => a - b);
    const shown = includeIncomplete ? sequences : await this.#complete(keys, sequences);
    return shown.flatMap((sequence) => found.get(sequence as ChannelSequence) ?? []);
  }

  /** An interaction's bytes with all that hangs below it as `nested_interactions`. */
  async nested(
    organizationId: EntityId,
    { channelId }: InteractionPlace,
    document: Buffer,
    shown: { readonly includeIncomplete: boolean },
  ): Promise<Buffer> {
    const below = await this.descendants(organizationId, channelId, spanIdOf(document), shown);
    // Spliced in before the closing brace: what is stored is sent as it is.
    const parts: Buffer[] = [document.subarray(0, -1), Buffer.from(',"nested_interactions":[')];
    for (const [index, one] of below.entries()) parts.push(...(index === 0 ? [one] : [Buffer.from(','), one]));
    return Buffer.concat([...parts, Buffer.from(']}')]);
  }

  /** A channel's interactions; null if the organization has no such channel. */
  async list(
    organizationId: EntityId,
    channelId: EntityId,
    filter: InteractionFilter,
    page: { readonly size: number; readonly offset: number; readonly after: string | null },
  ): Promise<InteractionPage | null> {
    const channel = await this.#entities.document(CHANNEL, organizationId, channelId);
    if (channel === null) return null;
    const keys = interactionKeys(organizationId, channelId);
    const set = keys.index(narrowestFacet(filter));
    const bounds = { after: filter.afterSequence, before: filter.beforeSequence };
    const cursor = page.after === null ? {} : { [filter.order === 'asc' ? 'after' : 'before']: Number(page.after) };
    const [total, kept] = await Promise.all([
      this.#total(keys, set, bounds, filter),
      this.#walk(keys, set, { ...bounds, ...cursor }, filter, page),
    ]);
    const sequences = kept.slice(0, page.size);
    const documents = await this.#documents(keys, sequences);
    return {
      items: documents.filter((document) => document !== null),
      total,
      hasNext: kept.length > page.size,
      last: sequences.at(-1)?.toString() ?? null,
    };
  }

  /** Goes through the index until the page is full, leaving out what is not to be shown. */
  async #walk(
    keys: InteractionKeys,
    set: string,
    bounds: { readonly after?: number | undefined; readonly before?: number | undefined },
    filter: InteractionFilter,
    page: { readonly size: number; readonly offset: number; readonly after: string | null },
  ): Promise<number[]> {
    const wanted = page.size + 1;
    const kept: number[] = [];
    const step = Math.max(wanted, 100);
    let toSkip = page.after === null ? page.offset : 0;
    for (let offset = 0; kept.length < wanted; offset += step) {
      const found = await this.#collections.numbers(set, { ...bounds, order: filter.order, offset, limit: step });
      const shown = filter.includeIncomplete ? found : await this.#complete(keys, found);
      const matching = await this.#inTurn(keys, shown, filter);
      kept.push(...matching.slice(toSkip));
      toSkip = Math.max(0, toSkip - matching.length);
      if (found.length < step) break;
    }
    return kept.slice(0, wanted);
  }

  async #total(
    keys: InteractionKeys,
    set: string,
    bounds: { readonly after?: number | undefined; readonly before?: number | undefined },
    filter: InteractionFilter,
  ): Promise<number> {
    if (filter.contentRole !== undefined && filter.turnId !== undefined) {
      const all = await this.#collections.numbers(set, { ...bounds, order: 'asc', offset: 0, limit: MAX_NESTED });
      const shown = filter.includeIncomplete ? all : await this.#complete(keys, all);
      return (await this.#inTurn(keys, shown, filter)).length;
    }
    const [count, incomplete] = await Promise.all([
      this.#collections.count(set, bounds),
      filter.includeIncomplete
        ? []
        : this.#collections.numbers(keys.index('incomplete'), {
            ...bounds,
            order: 'asc',
            offset: 0,
            limit: MAX_NESTED,
          }),
    ]);
    const hidden = await this.#collections.contained(set, incomplete);
    return count - hidden.filter(Boolean).length;
  }

  async #complete(keys: InteractionKeys, sequences: readonly number[]): Promise<number[]> {
    const incomplete = await this.#collections.contained(keys.index('incomplete'), sequences);
    return sequences.filter((_, index) => incomplete[index] !== true);
  }

  /** A turn is walked through its own index, so a role is what is left to check. */
  async #inTurn(keys: InteractionKeys, sequences: readonly number[], filter: InteractionFilter): Promise<number[]> {
    if (filter.turnId === undefined || filter.contentRole === undefined) return [...sequences];
    const ofRole = await this.#collections.contained(keys.index(`role=${filter.contentRole}`), sequences);
    return sequences.filter((_, index) => ofRole[index] === true);
  }

  #documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    return this.#collections.fields(keys.documents, sequences);
  }
}

function narrowestFacet({ turnId, contentRole }: InteractionFilter): InteractionFacet {
  if (turnId !== undefined) return `turn=${turnId}`;
  return contentRole === undefined ? 'all' : `role=${contentRole}`;
}

function spanIdOf(document: Buffer): string {
  const parsed: unknown = JSON.parse(document.toString());
  return typeof parsed === 'object' && parsed !== null && 'span_id' in parsed ? String(parsed.span_id) : '';
}
