/* Reads what servers say of their tools. Each tool is read by itself: one that cannot be used costs only itself. */
import { isDeepStrictEqual } from 'node:util';
import { isObject, parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';
import { textOf } from './server-words.ts';

/** A tool as its server describes it. All of it is data of someone else. */
export interface RemoteTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments, which are an object. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The server says that a call may be made twice. */
  readonly isRepeatable: boolean;
}

/** A tool that is not offered. */
export interface LeftOutTool {
  /** Null: unknown. */
  readonly name: string | null;
  /** A sentence without a full stop. */
  readonly reason: string;
}

const MAX_NAME = 256;

export function readTool(listed: unknown): RemoteTool | LeftOutTool {
  const given = isObject(listed) ? textOf(listed.name) : null;
  if (!isObject(listed) || given === null || given === '') return { name: null, reason: 'it has no name' };
  const name = admitText(given, MAX_NAME);
  if (name !== given) return { name, reason: 'its name is too long or not valid text' };
  const { title, description, annotations, execution } = listed;
  if (isObject(execution) && execution.taskSupport === 'required') {
    return { name, reason: 'it can only be called as a task, which is not supported' };
  }
  const input = inputOf(listed.inputSchema);
  if (input === null) return { name, reason: 'its input schema is not that of an object' };
  const hints = isObject(annotations) ? annotations : {};
  return {
    name,
    description: admitText(textOf(description) ?? textOf(title) ?? textOf(hints.title) ?? ''),
    input,
    isRepeatable: hints.readOnlyHint === true || hints.idempotentHint === true,
  };
}

/** Servers leave out the schema, or its type, of tools without arguments. Null for the schema of something else. */
function inputOf(schema: unknown): RemoteTool['input'] | null {
  if (schema === undefined || schema === null) return { type: 'object' };
  if (!isObject(schema)) return null;
  const { type } = schema;
  if (type === 'object') return schema;
  const takesObject = type === undefined || type === null || (Array.isArray(type) && type.includes('object'));
  return takesObject ? { ...schema, type: 'object' } : null;
}

/** The result of a tool. Each item is read by itself: one that cannot be read is named, and the others are there. */
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
