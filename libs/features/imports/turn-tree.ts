/** Builds the interactions of a conversation: a user's message opens a turn, what follows hangs below it. */
import { asObject, BadInput, checkedMessage, fitsAsMap, sourceTime } from './import.model.ts';
import type { MessageDraft, Place } from './import.model.ts';
import { parseSourceJson } from './source-json.ts';

type Content = readonly { readonly type: string }[];

/** Said about a message besides its content. */
export interface About {
  readonly name?: string | undefined;
  /** As the source has it. */
  readonly time?: unknown;
  readonly metadata?: Record<string, unknown>;
}

interface PendingCall {
  readonly key: string;
  readonly name: string;
  readonly id: string | null;
}

export class TurnTree {
  readonly messages: MessageDraft[] = [];
  readonly #place: Place;
  #root: string | null = null;
  #pending: PendingCall[] = [];

  constructor(place: Place) {
    this.#place = place;
  }

  user(content: Content, about: About = {}): void {
    const participant = {
      type: 'non_authenticated_user',
      user_metadata: about.name === undefined ? null : { name: about.name },
    };
    this.#root = this.#add({ participant, content, content_role: 'user_message' }, null, about);
    this.#pending = [];
  }

  /** Instructions: nobody said them, and they belong to no turn. */
  system(content: Content, about: About & { readonly sourceRole: string }): void {
    const metadata = { ...about.metadata, source_role: about.sourceRole };
    const body = { participant: { type: 'system' }, content, content_role: 'channel_notification' };
    this.#add(body, null, { ...about, metadata });
  }

  agent(content: Content, about: About = {}, contentRole = 'agent_response'): void {
    this.#below({ participant: agentOf(about), content, content_role: contentRole }, about);
  }

  toolCall(
    call: { readonly name: string; readonly args: Record<string, unknown>; readonly id: string | null },
    about: About = {},
  ): void {
    const content = [{ type: 'tool_call', tool_name: call.name, tool_args: call.args, tool_call_id: call.id }];
    const key = this.#below({ participant: agentOf(about), content, content_role: 'tool_call' }, about);
    this.#pending.push({ key, name: call.name, id: call.id });
  }

  /** Hangs below its call: the one with its id, else the oldest that has no result, of its name if it has one. */
  toolResult(
    result: { readonly name: string | null; readonly value: Record<string, unknown>; readonly id: string | null },
    about: About = {},
  ): void {
    const call = this.#takeCall(result);
    const content = [
      {
        type: 'tool_call_result',
        tool_name: result.name ?? call?.name ?? 'unknown',
        tool_result: result.value,
        tool_call_id: result.id ?? call?.id ?? null,
      },
    ];
    const body = { participant: agentOf(about), content, content_role: 'tool_call_result' };
    if (call === null) this.#below(body, about);
    else this.#add(body, call.key, about);
  }

  #takeCall({ name, id }: { readonly name: string | null; readonly id: string | null }): PendingCall | null {
    const fits = (call: PendingCall): boolean => (id !== null ? call.id === id : name === null || call.name === name);
    const at = this.#pending.findIndex(fits);
    return at < 0 ? null : (this.#pending.splice(at, 1)[0] ?? null);
  }

  /** Below the turn's message; without one, the first of them opens the turn itself. */
  #below(body: object, about: About): string {
    const key = this.#add(body, this.#root, about);
    this.#root ??= key;
    return key;
  }

  #add(body: object, parentKey: string | null, { time, metadata }: About): string {
    const key = `message ${this.messages.length}`;
    const at = sourceTime(time);
    const all = { ...metadata, ...(at !== null && { source_time: at }) };
    const checked = checkedMessage({ ...body, metadata: Object.keys(all).length === 0 ? null : all });
    this.messages.push({ place: this.#place, key, parentKey, body: checked });
    return key;
  }
}

function agentOf({ name }: About): object {
  return { type: 'external_agent', agent_metadata: name === undefined ? null : { name } };
}

/**
 * What a tool was given, or gave, as the map that the contract wants; text that is no map stays text, and a map
 * that the API does not take (for its size, or for its numbers) becomes its text.
 */
export function mapOf(value: unknown, member: string): Record<string, unknown> {
  const map = anyMapOf(value, member);
  if (fitsAsMap(map)) return map;
  return { [member]: typeof value === 'string' ? value : JSON.stringify(value) };
}

function anyMapOf(value: unknown, member: string): Record<string, unknown> {
  if (typeof value !== 'string') return asObject(value) ?? { [member]: value ?? null };
  try {
    return asObject(parseSourceJson(value)) ?? { [member]: value };
  } catch {
    // Models write such things; it is kept as they wrote it.
    return { [member]: value };
  }
}

/** @throws BadInput what is wrong with message `index`, by its number */
export function inMessage<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    throw new BadInput(`message ${index + 1}: ${error.message}`);
  }
}
