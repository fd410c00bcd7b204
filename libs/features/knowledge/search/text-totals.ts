import { type Columns, EDGE, NODE } from './columns.ts';

/** Facts of one kind that are present at a revision, and the reciprocals of the mean lengths of their texts. */
interface KindTotals {
  readonly count: number;
  readonly perNameWord: number;
  readonly perTextWord: number;
}

/** How many facts and documents there are at a revision, and how long their texts are: what lengths are compared with. */
export interface TextTotals {
  readonly kinds: readonly [nodes: KindTotals, edges: KindTotals];
  readonly documents: {
    readonly count: number;
    readonly words: number;
    /** By document: the words of its nodes. */
    readonly wordsOf: Float64Array;
  };
}

/** The last totals of each index: most queries ask for its end. */
const known = new WeakMap<Columns, { readonly revision: number; readonly totals: TextTotals }>();

export function textTotals(columns: Columns, revision: number): TextTotals {
  const last = known.get(columns);
  // Later events do not change what was present at a revision.
  if (last?.revision === revision) return last.totals;
  const totals = count(columns, revision);
  known.set(columns, { revision, totals });
  return totals;
}

function count(columns: Columns, revision: number): TextTotals {
  const facts = [0, 0];
  const nameWords = [1, 1];
  const textWords = [1, 1];
  const wordsOf = new Float64Array(columns.documents);
  let [documents, words] = [0, 0];
  const lastRow = columns.lastRowAt(revision);
  for (let row = 0; row <= lastRow; row++) {
    if (!columns.isPresent(row, revision)) continue;
    const kind = columns.kindOf(columns.item[row]!);
    facts[kind]! += 1;
    nameWords[kind]! += columns.nameWords[row]!;
    textWords[kind]! += columns.words[row]!;
    const document = columns.document[row]!;
    if (kind === EDGE || document === -1) continue;
    if (wordsOf[document] === 0) documents += 1;
    wordsOf[document]! += columns.nameWords[row]! + columns.words[row]!;
    words += columns.nameWords[row]! + columns.words[row]!;
  }
  const totalsOf = (kind: typeof NODE | typeof EDGE): KindTotals => ({
    count: facts[kind]!,
    perNameWord: facts[kind]! / nameWords[kind]!,
    perTextWord: facts[kind]! / textWords[kind]!,
  });
  return { kinds: [totalsOf(NODE), totalsOf(EDGE)], documents: { count: documents, words, wordsOf } };
}
