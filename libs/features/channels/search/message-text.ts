/* The text of interactions that search finds them by. The index and the highlights use the same text. */
import { admitText } from '#libs/kernel/text.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';

/** Of one message, in UTF-16 code units. The rest of a longer one is not searched. */
export const MAX_TEXT = 32_768;

/** Interactions of other roles (notifications, internal errors, reasoning, tool calls) are not found. */
const SEARCHED_ROLES: ReadonlySet<unknown> = new Set(['user_message', 'agent_response']);

/** Members of the items of content that are searched, by the type of the item. */
const SEARCHED_MEMBERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  text: [['text']],
  custom_content: [['alt_text']],
  media: [
    ['meta_data', 'name'],
    ['meta_data', 'description'],
  ],
};

/** A text of an item of content. */
export interface SearchedPart {
  /** Index of the item. */
  readonly item: number;
  /** Names of its members, joined by dots: `text`, `meta_data.name`. */
  readonly member: string;
  readonly text: string;
}

/** The searched texts of content in their order, as far as they fit into {@link MAX_TEXT}. */
export function searchedParts(content: unknown): SearchedPart[] {
  const parts: SearchedPart[] = [];
  let rest = MAX_TEXT;
  for (const [item, value] of (Array.isArray(content) ? content : []).entries()) {
    for (const path of SEARCHED_MEMBERS[String(memberOf(value, 'type'))] ?? []) {
      const found = path.reduce<unknown>(memberOf, value);
      if (typeof found !== 'string' || found === '' || rest <= 0) continue;
      const text = admitText(found, rest);
      rest -= text.length + 1;
      parts.push({ item, member: path.join('.'), text });
    }
  }
  return parts;
}

export function isSearchedRole(role: unknown): boolean {
  return SEARCHED_ROLES.has(role);
}

/** The change of the index that an event makes. An incomplete interaction is found when it is complete. */
export type MessageChange =
  | { readonly kind: 'posted'; readonly sequence: number; readonly atMs: number; readonly text: string }
  | { readonly kind: 'begun'; readonly sequence: number; readonly atMs: number; readonly text: string }
  | { readonly kind: 'added'; readonly sequence: number; readonly text: string }
  /** `text`: replaces the text so far, if it is not null. */
  | { readonly kind: 'completed'; readonly sequence: number; readonly text: string | null }
  /** Edited, or deleted where the text is empty. */
  | { readonly kind: 'replaced'; readonly sequence: number; readonly atMs: number; readonly text: string };

/** Null for an event that concerns no message. Reads only what the index needs: other readers of the log check events. */
export function messageChange({ type, revision, data, metadata, createdMs }: StoredEvent): MessageChange | null {
  const member = (name: string): unknown => memberOf(data, name);
  const atMs = (at: unknown): number => {
    const ms = typeof at === 'string' ? Date.parse(at) : Number.NaN;
    return Number.isNaN(ms) ? createdMs : ms;
  };
  const sequence = Number(member('sequence'));
  switch (type) {
    case 'InteractionPosted.v1': {
      if (!isSearchedRole(member('contentRole'))) return null;
      const at = atMs(memberOf(metadata, 'at'));
      const kind = member('complete') === false ? 'begun' : 'posted';
      return { kind, sequence: revision + 1, atMs: at, text: textOf(member('content')) };
    }
    case 'InteractionContentAppended.v1':
      return { kind: 'added', sequence, text: textOf(member('content')) };
    case 'InteractionCompleted.v1':
    case 'InteractionCompleted.v2': {
      const content = member('content');
      return { kind: 'completed', sequence, text: content === null || content === undefined ? null : textOf(content) };
    }
    case 'InteractionFailed.v1':
      return { kind: 'completed', sequence, text: null };
    case 'InteractionEdited.v1':
    case 'InteractionDeleted.v1': {
      const interaction = member('interaction');
      if (!isSearchedRole(memberOf(interaction, 'contentRole'))) return null;
      const text = type === 'InteractionDeleted.v1' ? '' : textOf(memberOf(interaction, 'content'));
      return { kind: 'replaced', sequence, atMs: atMs(memberOf(interaction, 'createdAt')), text };
    }
    default:
      return null;
  }
}

function textOf(content: unknown): string {
  return searchedParts(content)
    .map(({ text }) => text)
    .join('\n');
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (Reflect.get(value, name) as unknown) : undefined;
}
