import { ARTICLE_REGION, ASIDE_REGION, type Block, BODY_REGION, MAIN_REGION, type Region } from './blocks.ts';

/** Characters that a part of a page must have to be its content. */
export const MIN_CONTENT = 140;
/** Share of the text that articles have where they are the content. */
const MIN_ARTICLES = 0.3;
/** Characters of a link that is more than the name of a page. */
const MIN_SENTENCE = 80;
/** Share of a page's text that blocks of links may be, so that the rest is its content. */
const MAX_LINKS = 0.6;
/**
 * Characters of a paragraph from which on its repetition under the same heading, or beside it, is the same message for
 * another kind of screen. Under other headings, documentation says the same of several functions.
 */
const MIN_REPEATED = 80;
/** Blocks from a paragraph to its repetition beside it: a heading may be between. */
const MAX_BESIDE = 2;
/** Links with the same text, such as "Read more", that lead to different things. */
const MAX_LABELS = 1;
const MAX_LABEL = 30;
/** Share of the text under a heading of other content. Where it has more, it is the content. */
const MAX_OTHER = 0.5;
/** Headings of what follows the content: other pages, and how to share this one. */
const OTHER_CONTENT = new RegExp(
  '^(?:' +
    [
      '(?:related|recommended|similar|popular|featured|recent|latest|more|other|trending|suggested) ' +
        '(?:products?|items?|articles?|posts?|stories|news|content|topics?|reading|insights?|resources?|blogs?|videos?|pages?|questions|reads|guides)(?: .{0,30})?',
      '(?:you|we think you|you.d) (?:may|might|could|will|.ll|would)(?: also)? (?:like|love|enjoy|be interested in|need).*',
      '(?:customers|people|others|shoppers)(?: who .{0,30})? (?:also|who) .*',
      '(?:recently|last|previously) (?:viewed|seen)(?: .*)?',
      '(?:frequently|often) bought together.*|more (?:from|like|in|by|to) .{0,60}|(?:read|see|view|explore|discover) (?:more|next|also)(?: .*)?',
      '(?:keep|continue) (?:reading|exploring)|(?:what|up).{0,5} next|next (?:article|post)',
      'complete (?:the|your) (?:look|set|outfit)|pairs? (?:well )?with.*|shop the look|goes well with.*',
      'share (?:this|on|via|the)?(?: .{0,20})?|follow us(?: .*)?|(?:sign up|subscribe)(?: .*)?|join (?:our|the) (?:newsletter|mailing list|community).*|newsletter(?: .*)?',
      '(?:leave|post|write|add|submit) (?:a|your) (?:comment|reply|review)|about the authors?|advertisements?|sponsored(?: .*)?',
      '(?:customer |product |user |verified )?(?:reviews?|ratings?)(?: (?:&|and) (?:reviews?|ratings?))?(?: ?\\(\\d+\\))?',
      'ähnliche .*|verwandte .*|weitere .{0,40}|das könnte (?:sie|dir|ihnen) .*|kunden .* auch .*|(?:vous aimerez|articles? (?:similaires|liés|connexes)|à lire aussi|produits (?:similaires|associés)).*',
      '(?:artículos|productos|contenido|noticias) (?:relacionad|similar|recomendad).*|(?:también te puede|te puede interesar).*|相关.{0,6}|推荐.{0,6}|関連.{0,8}|おすすめ.{0,8}|похожие .*|читайте также.*',
    ].join('|') +
    ')[:!?…]?$',
  'i',
);
const PLACEHOLDER = /^(?:\{\{[^{}]{0,200}\}\}\s*)+$/;

export interface PageContent {
  readonly blocks: readonly Block[];
  readonly region: Region;
}

/** The main content if it is marked, else articles, else all but navigation, else everything. */
export function contentOf(blocks: readonly Block[]): PageContent {
  const { region, blocks: content } = regionOf(blocks);
  return { region, blocks: withoutLabels(withoutOther(content)) };
}

function regionOf(blocks: readonly Block[]): PageContent {
  const reading = (region: Region) => ({ blocks: blocks.filter((block) => block.region >= region), region });
  const main = reading(MAIN_REGION);
  if (sizeOf(main.blocks) >= MIN_CONTENT) return main;
  const body = reading(BODY_REGION);
  if (body.blocks.length === 0) return reading(ASIDE_REGION);
  const text = body.blocks.filter((block) => !isLink(block));
  const articles = reading(ARTICLE_REGION);
  // Teasers of articles stand below other content.
  if (sizeOf(articles.blocks) >= Math.max(MIN_CONTENT, MIN_ARTICLES * sizeOf(text))) return articles;
  const isText = sizeOf(text) >= Math.max(MIN_CONTENT, (1 - MAX_LINKS) * sizeOf(body.blocks));
  return isText ? { blocks: text, region: BODY_REGION } : body;
}

/** A link of a menu, not a sentence or a card that is one. */
function isLink({ kind, plain, linked }: Block): boolean {
  return kind !== 'heading' && linked * 4 >= plain.length * 3 && plain.length < MIN_SENTENCE;
}

export function sizeOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { kind, plain }) => sum + (kind === 'heading' ? 0 : plain.length), 0);
}

/** Without the sections of other content. */
function withoutOther(blocks: readonly Block[]): readonly Block[] {
  const size = sizeOf(blocks);
  const left: Block[] = [];
  for (let at = 0; at < blocks.length; at += 1) {
    const block = blocks[at]!;
    if (block.kind === 'heading' && OTHER_CONTENT.test(block.plain.trim())) {
      const end = sectionEnd(blocks, at);
      if (sizeOf(blocks.slice(at, end)) <= MAX_OTHER * size) {
        at = end - 1;
        continue;
      }
    }
    left.push(block);
  }
  return left;
}

function sectionEnd(blocks: readonly Block[], start: number): number {
  const { level } = blocks[start]!;
  let end = start + 1;
  while (end < blocks.length && (blocks[end]!.kind !== 'heading' || blocks[end]!.level > level)) end += 1;
  return end;
}

/** Without what repeats, or was to be filled in by scripts. */
function withoutLabels(blocks: readonly Block[]): readonly Block[] {
  const counts = new Map<string, number>();
  const isLabel = ({ kind, plain, linked }: Block) =>
    (kind === 'paragraph' || kind === 'item') && plain.length <= MAX_LABEL && linked * 4 >= plain.length * 3;
  for (const block of blocks) if (isLabel(block)) counts.set(block.plain, (counts.get(block.plain) ?? 0) + 1);
  const seen = new Map<string, { readonly heading: string; readonly at: number }>();
  let heading = '';
  return blocks.filter((block, at) => {
    const { kind, plain } = block;
    if (kind === 'heading') heading = plain;
    if (kind !== 'paragraph' && kind !== 'item') return true;
    if (isLabel(block) && counts.get(plain)! > MAX_LABELS) return false;
    if (PLACEHOLDER.test(plain)) return false;
    if (kind !== 'paragraph' || plain.length < MIN_REPEATED) return true;
    const before = seen.get(plain);
    seen.set(plain, { heading, at });
    return before === undefined || (before.heading !== heading && at - before.at > MAX_BESIDE);
  });
}
