/* Reads what servers say of their tools. Each tool is read by itself: one that cannot be used costs only itself. */
import { isObject } from '#libs/kernel/json.ts';
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
