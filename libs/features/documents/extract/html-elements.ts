/** What elements of HTML mean for readable text. */

export const VOID = 1;
/** Starts and ends a block of text. */
export const BLOCK = 2;
/** Holds no readable text. */
export const HIDDEN = 4;
/** Navigation and the like: text that is read only when a page has no other. */
export const ASIDE = 8;
/** As ASIDE, unless it is part of the main content. */
export const OUTER_ASIDE = 16;

const FLAGS = new Map<string, number>();

function flag(names: string, flags: number): void {
  for (const name of names.split(' ')) FLAGS.set(name, (FLAGS.get(name) ?? 0) | flags);
}

flag('area base basefont br col embed frame hr img input link meta param source track wbr', VOID);
flag('address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure', BLOCK);
flag('footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre', BLOCK);
flag('search section summary table caption tbody td tfoot th thead tr ul', BLOCK);
flag('script style template svg math canvas audio video object iframe noembed noframes map datalist', HIDDEN);
flag('head title textarea select button noscript rp', HIDDEN);
flag('nav footer dialog menu search', ASIDE);
flag('header aside', OUTER_ASIDE);

export function flagsOf(name: string): number {
  return FLAGS.get(name) ?? 0;
}

const ASIDE_ROLES = new Set(
  'navigation banner contentinfo complementary search menu menubar dialog alertdialog doc-toc'.split(' '),
);

/** Whole words of `class` and `id`: parts of words, as in `with-sidebar`, name whole layouts. */
const ASIDE_NAMES = new Set(
  (
    'nav navbar docnav navigation navheader navfooter site-nav sidebar side-bar sphinxsidebar related breadcrumb breadcrumbs ' +
    'toc table-of-contents footer page-footer site-footer site-header menu cookie-banner cookie-consent advertisement ' +
    'ads pagination pager prev-next skip-link skip-nav skiplink share social newsletter comments headerlink ' +
    'sr-only visually-hidden noprint printfooter mw-editsection catlinks mw-jump-link'
  ).split(' '),
);

export function isAside(role: string | undefined, classes: string | undefined, id: string | undefined): boolean {
  if (role !== undefined && ASIDE_ROLES.has(role)) return true;
  if (id !== undefined && ASIDE_NAMES.has(id)) return true;
  if (classes === undefined) return false;
  if (!classes.includes(' ')) return ASIDE_NAMES.has(classes);
  return classes.split(' ').some((word) => ASIDE_NAMES.has(word));
}

/** What opening an element ends. */
interface ImpliedEnds {
  readonly ends: ReadonlySet<string>;
  /** Elements that bound the search. */
  readonly within: ReadonlySet<string>;
  /** All of `ends` up to the bound, not only the innermost. */
  readonly all: boolean;
}

const CELLS = 'tr td th caption';

export const IMPLIED_ENDS = new Map<string, ImpliedEnds>(
  (
    [
      ['li', 'li', 'ul ol menu dir', false],
      ['dt', 'dt dd', 'dl', false],
      ['dd', 'dt dd', 'dl', false],
      ['option', 'option', 'select datalist optgroup', false],
      ['td', 'td th', 'tr table', false],
      ['th', 'td th', 'tr table', false],
      ['tr', CELLS, 'table', true],
      ['tbody', `thead tbody tfoot ${CELLS}`, 'table', true],
      ['thead', `thead tbody tfoot ${CELLS}`, 'table', true],
      ['tfoot', `thead tbody tfoot ${CELLS}`, 'table', true],
      ['body', 'head', 'html', false],
    ] as const
  ).map(([name, ends, within, all]) => [
    name,
    { ends: new Set(ends.split(' ')), within: new Set(within.split(' ')), all },
  ]),
);
