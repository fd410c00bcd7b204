/** The meaning of elements of HTML for readable text. */

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

flag('address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure', BLOCK);
flag('footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre', BLOCK);
flag('search section summary table caption tbody td tfoot th thead tr ul', BLOCK);
flag('script style template svg canvas audio video object iframe noembed noframes map datalist', HIDDEN);
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
    'sr-only visually-hidden noprint printfooter mw-editsection catlinks mw-jump-link message-signature ' +
    'post-signature user-signature'
  ).split(' '),
);

export function isAsideRole(role: string | undefined): boolean {
  return role !== undefined && ASIDE_ROLES.has(role);
}

/** Parts of a page that are beside its content, as the last word of a name: `product-recommendations`, `mini_cart`. */
const ASIDE_WORDS = new Set(
  (
    'ad ads advert adverts advertisement breadcrumb breadcrumbs cart minicart basket wishlist cookie cookies consent gdpr ' +
    'dialog dropdown facets filter filters flyout footer lightbox login signin signup megamenu menu modal nav navbar navigation ' +
    'newsletter offcanvas overlay pager pagination popover popup recommendation recommendations recommended ' +
    'refinement refinements related reviews sharing sidebar skiplink social sort sorting sponsor sponsored ' +
    'sponsors subscribe subscription toast toolbar tooltip topbar upsell upsells crosssell userdetails userextras'
  ).split(' '),
);
/** Words that count wherever they stand in a name: `related-products__list`. */
const ASIDE_ANYWHERE = new Set(
  'related recommended recommendations recommendation recently upsell upsells newsletter cookie cookies consent megamenu minicart breadcrumb breadcrumbs'.split(
    ' ',
  ),
);
/** Words of a name that say how an element is built, and not what it is. */
const BUILDING = new Set(
  'container wrapper wrap inner outer section block box area list widget component row'.split(' '),
);
/** Words before a name that make it one of a layout with that part. */
const LAYOUT = /^(?:has|with|without|no|is|not|show|hide|open|page|layout|main|content|js|body|single|left|right)$/;

function isAsideWord(name: string): boolean {
  // Blocks and elements of BEM, without modifiers; camel case as hyphens.
  const words = name
    .replace(/--.*$/, '')
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[-_]+/);
  const last = words.findLast((word) => !BUILDING.has(word) && !/^\d+$/.test(word));
  const isAside = (last !== undefined && ASIDE_WORDS.has(last)) || words.some((word) => ASIDE_ANYWHERE.has(word));
  return isAside && !words.some((word) => LAYOUT.test(word));
}

/** Classes by which forums and comments mark the text of a post: XenForo, Invision, vBulletin, MyBB, Reddit, and others. */
const POSTS = new Set(
  (
    'bbwrapper message-body message-content postcontent post_body post-body post_content post-message postmessage posttext ' +
    'comment_text comment-text comment-content commtext usertext-body s-prose ipstype_richtext ipsrichtext'
  ).split(' '),
);

/** Classes by which highlighters mark the numbers of lines: Pygments, Rouge, highlight.js, Prism. */
const LINE_NUMBERS = new Set('linenos lineno linenodiv rouge-gutter hljs-ln-numbers line-numbers-rows'.split(' '));

export const NAMES_ASIDE = 1;
export const NAMES_POST = 2;
export const NAMES_LINE_NUMBERS = 4;
export const NAMES_SIGNATURE = 8;

/** Sites use the same names, and combine them in the same few ways, in all of their pages. */
const known = new Map<string, number>();
const MAX_KNOWN = 20_000;

/**
 * The meaning of the words of a `class` or an `id`: NAMES_ASIDE stands beside the content, NAMES_POST is the text of
 * a post, NAMES_LINE_NUMBERS has the numbers of the lines of code, NAMES_SIGNATURE is that of a person or of a function.
 */
export function meaningOf(names = ''): number {
  if (names === '') return 0;
  const found = known.get(names);
  if (found !== undefined) return found;
  const words = names.split(/\s+/);
  const meaning = words.length > 1 ? words.reduce((all, word) => all | meaningOf(word), 0) : meaningOfName(names);
  if (known.size >= MAX_KNOWN) known.clear();
  // A copy: a part of a page keeps all of the page in memory.
  if (names.length < 500) known.set(Buffer.from(names).toString(), meaning);
  return meaning;
}

function meaningOfName(name: string): number {
  const isAside = ASIDE_NAMES.has(name) || isAsideWord(name);
  return (
    (isAside ? NAMES_ASIDE : 0) |
    (POSTS.has(name.toLowerCase()) ? NAMES_POST : 0) |
    (LINE_NUMBERS.has(name) ? NAMES_LINE_NUMBERS : 0) |
    (name === 'signature' ? NAMES_SIGNATURE : 0)
  );
}
