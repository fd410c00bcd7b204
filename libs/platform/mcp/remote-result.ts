/* Reads results of tools. Each item is read by itself: one that cannot be read is named, and the others are there. */
import { isDeepStrictEqual } from 'node:util';

import { isObject, parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';

import { textOf } from './server-words.ts';

export interface RemoteResult {
  readonly isError: boolean;
  /** Texts of the result, also of embedded resources; other items are named with their types. */
  readonly text: string;
}

/** Null for what is no result. */
export function readResult(result: unknown): RemoteResult | null {
  if (!isObject(result)) return null;
  const { content, structuredContent } = result;
  const items = content === undefined || content === null ? [] : [content].flat();
  const texts = items.map(textOfItem);
  // Servers repeat structured content as a text, for clients that do not know it.
  const isRepeated = items.some(
    (item) => isObject(item) && isDeepStrictEqual(parsedJson(textOf(item.text) ?? ''), structuredContent),
  );
  const structured = structuredContent ?? (items.length === 0 ? result.toolResult : undefined);
  if (structured !== undefined && structured !== null && !isRepeated) texts.push(jsonTextOf(structured));
  return { isError: result.isError === true, text: admitText(texts.filter((text) => text !== '').join('\n')) };
}

function textOfItem(item: unknown): string {
  if (typeof item === 'string') return item;
  if (!isObject(item)) return '[an item that is not valid]';
  switch (item.type) {
    case 'text':
      return textOf(item.text) ?? '[text that is not valid]';
    case 'image':
    case 'audio':
      return `[${[item.type, textOf(item.mimeType), bytesOf(item.data)].filter(Boolean).join(', ')}]`;
    case 'resource':
      return textOfResource(item.resource);
    case 'resource_link': {
      const named = [item.title ?? item.name, item.uri, item.mimeType, item.description].map(textOf);
      return `[link: ${named.filter(Boolean).join(', ')}]`;
    }
    default:
      return `[an item of the type ${admitText(JSON.stringify(item.type) ?? 'undefined', 100)}]`;
  }
}

function textOfResource(resource: unknown): string {
  if (!isObject(resource)) return '[a resource that is not valid]';
  const named = ['resource', textOf(resource.uri), textOf(resource.mimeType)];
  const text = textOf(resource.text);
  if (text !== null) return `[${named.filter(Boolean).join(', ')}]\n${text}`;
  return `[${[...named, bytesOf(resource.blob)].filter(Boolean).join(', ')}]`;
}

/** @param data Base64 */
function bytesOf(data: unknown): string | null {
  const text = textOf(data);
  return text === null ? null : `${Buffer.byteLength(text, 'base64')} bytes`;
}

function jsonTextOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '[data that is nested too deeply]';
  }
}
