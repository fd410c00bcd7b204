/** Slack's markup as text: links written out, entities decoded, and mentions with their places in the text. */

export interface SlackPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly isBot: boolean;
}

export interface Mention {
  readonly type: 'agent' | 'user';
  readonly id: string;
  readonly identifier: string;
  readonly identifier_type: 'handle';
  /** In UTF-16 units of the text. */
  readonly offset: number;
  readonly length: number;
}

const MARKUP = /<([^<>]+)>|&(amp|lt|gt);/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>' };

export function readSlackText(
  source: string,
  people: ReadonlyMap<string, SlackPerson>,
): { readonly text: string; readonly mentions: readonly Mention[] } {
  const mentions: Mention[] = [];
  let text = '';
  let at = 0;
  for (const match of source.matchAll(MARKUP)) {
    text += source.slice(at, match.index);
    at = match.index + match[0].length;
    const [, marked, entity] = match;
    const person = marked === undefined ? null : /^@([A-Z0-9]+)(?:\|(.*))?$/.exec(marked);
    if (person === null) {
      text += marked === undefined ? (ENTITIES[entity ?? ''] ?? '') : plain(marked);
      continue;
    }
    const [, id = '', label] = person;
    const known = people.get(id);
    const identifier = known?.name ?? (label === undefined || label === '' ? id : label);
    const shown = `@${identifier}`;
    const type = known?.isBot === true ? 'agent' : 'user';
    mentions.push({ type, id, identifier, identifier_type: 'handle', offset: text.length, length: shown.length });
    text += shown;
  }
  return { text: text + source.slice(at), mentions };
}

/** `<#C1|general>`, `<!here>`, `<!subteam^S1|@team>`, `<https://…|label>`. */
function plain(marked: string): string {
  const bar = marked.indexOf('|');
  const target = decoded(bar < 0 ? marked : marked.slice(0, bar));
  const label = bar < 0 ? '' : decoded(marked.slice(bar + 1));
  if (target.startsWith('#')) return `#${label || target.slice(1)}`;
  if (target.startsWith('!')) return label || `@${target.slice(1)}`;
  return label === '' || label === target ? target : `${label} (${target})`;
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt);/g, (_, name: string) => ENTITIES[name] ?? '');
}
