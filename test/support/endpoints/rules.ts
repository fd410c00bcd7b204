/** Rules that several families have, in the words of each. */
import type { Call, ChatRequest, Conversation, Message, Rule } from './endpoint.ts';

export const lastTurn = (messages: readonly Message[]): readonly Message[] =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);

export const callsIn = (messages: readonly Message[]): Call[] =>
  messages.flatMap(({ tool_calls: calls = [] }) => calls);

/** The messages with calls of the last turn, each with the message that the endpoint gave. */
export function pairs({ messages }: ChatRequest, { given }: Conversation): (readonly [Message, Message])[] {
  const calling = lastTurn(messages).filter(isCalling);
  const wanted = given.filter(isCalling).slice(-calling.length);
  return calling.flatMap((message, index) => (wanted[index] === undefined ? [] : [[message, wanted[index]] as const]));
}

const isCalling = ({ tool_calls: calls = [] }: Message): boolean => calls.length > 0;

/** Ids of calls that the messages right after them do not answer. */
function unanswered(messages: readonly Message[]): string[] {
  return messages.flatMap(({ tool_calls: calls = [] }, index) => {
    const after = messages.slice(index + 1);
    const end = after.findIndex(({ role }) => role !== 'tool');
    const answered = new Set(after.slice(0, end === -1 ? undefined : end).map(({ tool_call_id: id }) => id));
    return calls.map(({ id }) => id).filter((id) => !answered.has(id));
  });
}

/** The index of a result without a call before it; -1: there is none. */
function orphan(messages: readonly Message[]): number {
  return messages.findIndex((message, index) => {
    if (message.role !== 'tool') return false;
    const before = messages.slice(0, index).findLast(({ role }) => role !== 'tool');
    return before?.tool_calls?.some(({ id }) => id === message.tool_call_id) !== true;
  });
}

export const everyCallIsAnswered = (source: string, says: (ids: readonly string[]) => string): Rule => ({
  says: 'each call of a tool is answered right after it',
  source,
  broken: ({ messages }) => {
    const ids = unanswered(messages);
    return ids.length === 0 ? null : says(ids);
  },
});

export const everyResultHasACall = (source: string, says: (index: number, message: Message) => string): Rule => ({
  says: 'each result of a tool follows its call',
  source,
  broken: ({ messages }) => {
    const index = orphan(messages);
    return index === -1 ? null : says(index, messages[index]!);
  },
});

/** Roles after the system message, results of tools left out. */
export const rolesAlternate = (source: string, says: string): Rule => ({
  says: 'a user begins; users and assistants take turns, except for calls and results; the system comes first alone',
  source,
  broken: ({ messages }) => {
    const [first, ...others] = messages;
    const rest = first?.role === 'system' ? others : messages;
    if (rest.some(({ role }) => role === 'system')) return says;
    const turns = rest.filter(({ role, tool_calls: calls = [] }) => role !== 'tool' && calls.length === 0);
    const alternate = turns.every(({ role }, index) => role === (index % 2 === 0 ? 'user' : 'assistant'));
    return alternate && rest[0]?.role === 'user' ? null : says;
  },
});

/** A parameter that the endpoint does not accept, or only with one value. */
export function parameter(name: string, source: string, says: string, allowed?: unknown): Rule {
  return {
    says: allowed === undefined ? `no ${name}` : `${name} is ${JSON.stringify(allowed)} or absent`,
    source,
    parameter: name,
    broken: (request) => (request[name] === undefined || request[name] === allowed ? null : says),
  };
}

export const namesFit = (source: string, says: (path: string) => string): Rule => ({
  says: 'names of tools and of calls match ^[a-zA-Z0-9_-]{1,64}$',
  source,
  broken: ({ tools = [], messages }) => {
    const names: (readonly [string, string])[] = [
      ...tools.map((tool, index) => [`tools[${index}].function.name`, tool.function.name] as const),
      ...messages.flatMap(({ tool_calls: calls = [] }, at) =>
        calls.map((call, index) => [`messages[${at}].tool_calls[${index}].function.name`, call.function.name] as const),
      ),
    ];
    const wrong = names.find(([, name]) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
    return wrong === undefined ? null : says(wrong[0]);
  },
});

export const argumentsAreJson = (source: string, says: (problem: string) => string): Rule => ({
  says: 'the arguments of calls in the history are JSON objects',
  source,
  broken: ({ messages }) => {
    for (const call of callsIn(messages)) {
      try {
        const value: unknown = JSON.parse(call.function.arguments);
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return says('not an object');
      } catch (error) {
        return says((error as Error).message);
      }
    }
    return null;
  },
});

/** Ids come back as they were given. */
export const idsAreKept = (source: string, says: (id: string) => string): Rule => ({
  says: 'ids of calls come back unchanged',
  source,
  broken: ({ messages }, { given }) => {
    const known = new Set(callsIn(given).map(({ id }) => id));
    const other = callsIn(messages).find(({ id }) => !known.has(id));
    return other === undefined ? null : says(other.id);
  },
});

export function noEmptyText(source: string, says: string): Rule {
  return {
    says: 'no message has an empty text; a call without a text has the content null, or none',
    source,
    broken: ({ messages }) => (messages.some(({ content }) => isBlank(content)) ? says : null),
  };
}

function isBlank(content: unknown): boolean {
  return typeof content === 'string' && content.trim() === '';
}

/** A member of a message with calls comes back as it was given, in the turn that it belongs to. */
export function memberIsKept(name: string, source: string, says: (index: number) => string): Rule {
  return {
    says: `${name} of a message with calls comes back unchanged`,
    source,
    broken: (request, conversation) => {
      const wrong = pairs(request, conversation).find(
        ([message, wanted]) => JSON.stringify(message[name]) !== JSON.stringify(wanted[name]),
      );
      return wrong === undefined ? null : says(request.messages.indexOf(wrong[0]));
    },
  };
}

/** Schemas of the tools of a request, with their paths. */
export function schemas({ tools = [] }: ChatRequest): { readonly path: string; readonly schema: Schema }[] {
  return tools.flatMap(({ function: { parameters } }, index) =>
    parameters === undefined ? [] : within(parameters as Schema, `tools[${index}].parameters`),
  );
}

export type Schema = Readonly<Record<string, unknown>>;

function within(schema: Schema, path: string): { readonly path: string; readonly schema: Schema }[] {
  const { properties, items, anyOf } = schema;
  const inner = [
    ...Object.entries((properties ?? {}) as Record<string, Schema>).map(
      ([name, one]) => [one, `${path}.properties[${name}]`] as const,
    ),
    ...(items === undefined ? [] : [[items as Schema, `${path}.items`] as const]),
    ...((anyOf ?? []) as Schema[]).map((one, index) => [one, `${path}.any_of[${index}]`] as const),
  ];
  return [{ path, schema }, ...inner.flatMap(([one, at]) => (typeof one === 'object' ? within(one, at) : []))];
}
