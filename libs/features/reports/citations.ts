/* The numbers that a report cites its sources by, and the list of them at its end. */
import { cut, type Finding, plainTextOf, type Plan, type Source } from '#libs/features/knowledge/index.ts';

const MAX_QUOTE = 200;

/** The source of a citation: a passage, or statements of callers, which have no source. */
export interface Cited {
  readonly source: Source | null;
  readonly finding: Finding;
}

/** Equal for sources that have one number. */
export function keyOf({ source, finding }: Cited): string {
  return source === null ? finding.graphId : `${source.documentId}\n${source.passage ?? ''}`;
}

/** The sources in the order in which they are first cited: one number for each passage. */
export class Citations {
  readonly #graphNames: ReadonlyMap<string, string>;
  readonly #sources = new Map<string, string>();

  constructor({ graphs }: Plan) {
    this.#graphNames = new Map(graphs.map(({ id, name }) => [id, name]));
  }

  section(): string {
    if (this.#sources.size === 0) return '';
    const lines = [...this.#sources.values()].map((source, index) => `${index + 1}. ${source}`);
    return `## Sources\n\n${lines.join('\n')}`;
  }

  numberOf(cited: Cited): number {
    const key = keyOf(cited);
    if (!this.#sources.has(key)) this.#sources.set(key, this.#sourceText(cited));
    return [...this.#sources.keys()].indexOf(key) + 1;
  }

  #sourceText({ source, finding }: Cited): string {
    const { graphId } = finding;
    if (source === null)
      return `A caller's statement in the graph "${escaped(this.#graphNames.get(graphId) ?? graphId)}"`;
    const url =
      source.url !== null && /^https?:\/\//i.test(source.url)
        ? ` <${source.url.replace(/[\s<>]/g, encodeURIComponent)}>`
        : '';
    const passage = plainTextOf(source.passage ?? '');
    const heading = headingOf(finding);
    const name = `**${escaped(source.name)}**${heading === null ? '' : `, ${escaped(heading)}`}`;
    return `${name}${url}${passage === '' ? '' : `: ${escaped(cut(passage, MAX_QUOTE))}`}`;
  }
}

/** Of a section of a document. */
export function headingOf({ name, labels, sources }: Finding): string | null {
  // The further passages of a section are numbered.
  const heading = name.replace(/ \(\d+\)$/, '');
  return labels.includes('Section') && heading !== sources[0]?.name ? heading : null;
}

/** Text as Markdown that shows it as it is, within a line: names and documents come from outside. */
export function escaped(text: string): string {
  const plain = text.replace(/\s+/g, ' ').trim();
  return plain.replace(/[\\`*[\]<>|~]|(?<!\w)_|_(?!\w)/g, '\\$&').replace(/&(?=#?\w+;)/g, '&amp;');
}
