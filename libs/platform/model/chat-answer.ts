import { isObject, type JsonObject } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';

import { ChatCalls } from './chat-calls.ts';
import { EndpointError, statusOfError } from './model.failures.ts';
import { type ModelEnd, type ModelFinish, type ModelPart, type ModelTool, type ModelUsage, NO_USAGE } from './model.ts';
import { OpaqueMembers, sentMessage } from './sent-message.ts';
import { ThinkTags } from './think-tags.ts';
import { TextFlow } from './text-flow.ts';

const MAX_NAME = 200;
/** Characters of a content that is kept as it was sent, besides the text that is shown. */
const MAX_RAW = 131_072;

/** Names under which endpoints send reasoning as text. One delta may have the same text under several. */
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_text', 'thinking'];
/** Names of lists of blocks of reasoning, shown where no member has their text. */
const BLOCKS = ['reasoning_details', 'thinking_blocks'];

/** The names that endpoints give to the reasons that Parley knows. */
const FINISHES: Readonly<Record<string, ModelFinish>> = {
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  complete: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  max_output_tokens: 'length',
  tool_calls: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
  'content-filter': 'content_filter',
  safety: 'content_filter',
  prohibited_content: 'content_filter',
  blocklist: 'content_filter',
  recitation: 'content_filter',
  sensitive: 'content_filter',
  refusal: 'content_filter',
};
/** Reasons that are failures of the endpoint. */
const FAILED = new Set(['error', 'network_error', 'abort', 'insufficient_system_resource']);

/**
 * One answer, from the chunks of chat completions as endpoints send them. Reads what it needs, and takes any other member
 * for what the endpoint wants to get back.
 */
export class ChatAnswer {
  /** Parts that were not taken yet. */
  #parts: ModelPart[] = [];
  readonly #calls: ChatCalls;
  readonly #others = new OpaqueMembers();
  readonly #think: ThinkTags;
  readonly #textFlow = new TextFlow();
  readonly #reasoningFlow = new TextFlow();
  /** The content as it was sent. */
  #raw = '';
  #contentItems: unknown[] | null = null;
  #textLength = 0;
  #hasDeltas = false;
  #hasReasoningText = false;
  #finish: string | null = null;
  #model: string | null = null;
  #usage: ModelUsage | null = null;

  constructor(offered: ReadonlyMap<string, ModelTool>) {
    this.#calls = new ChatCalls(offered);
    this.#think = new ThinkTags(
      (text) => this.#emit('text', this.#textFlow.add(text)),
      (text) => this.#emit('reasoning', this.#reasoningFlow.add(text)),
    );
  }

  /** Whether the endpoint has said why the answer ended. */
  get hasFinish(): boolean {
    return this.#finish !== null;
  }

  /** Whether calls arrived that are whole. Some endpoints end their stream after calls without a reason. */
  get hasWholeCalls(): boolean {
    return this.#calls.areWhole;
  }

  get usage(): ModelUsage {
    return this.#usage ?? NO_USAGE;
  }

  /** @throws EndpointError for an error in the place of an answer */
  add(chunk: JsonObject): void {
    const { model, choices } = chunk;
    if (isError(chunk['error'])) throw errorIn(chunk);
    if (this.#model === null && typeof model === 'string' && model !== '') this.#model = model;
    this.#readUsage(chunk['usage']);
    if (!Array.isArray(choices)) {
      if (chunk['type'] === 'error' || chunk['object'] === 'error' || 'detail' in chunk) throw errorIn(chunk);
      if (isObject(chunk['x_groq'])) this.#readUsage(chunk['x_groq']['usage']);
      return;
    }
    // Only one choice is asked for. Some servers number it by its tokens.
    const given = (choices as unknown[]).filter(isObject);
    const choice = given.find(({ index = 0 }) => index === 0) ?? given[0];
    if (choice !== undefined) this.#addChoice(choice);
  }

  /** The parts since the last call. */
  take(): readonly ModelPart[] {
    if (this.#parts.length === 0) return NONE;
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  /** Adds the parts that are certain only at the end: tool calls are complete then. @returns the end */
  end(source: string, requested: string): Omit<Extract<ModelEnd, { type: 'finish' }>, 'cost'> {
    this.#think.end();
    this.#emit('reasoning', this.#reasoningFlow.end());
    this.#emit('text', this.#textFlow.end());
    const calls = this.#calls.finish();
    for (const { part } of calls) this.#parts.push(part);
    const isOther = this.#raw.length !== this.#textLength && this.#raw.length <= MAX_RAW;
    const content = this.#contentItems ?? (isOther ? this.#raw : '');
    const { sent, omitted } = sentMessage(source, {
      ...this.#others.members,
      ...(content.length > 0 && { content }),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => call.sent) }),
    });
    return {
      type: 'finish',
      reason: this.#reasonOf(calls.length > 0),
      model: admitText(this.#model ?? requested, MAX_NAME),
      usage: this.usage,
      sent,
      omitted: this.#calls.left === 0 ? omitted : [...omitted, `${this.#calls.left} further tool calls`],
    };
  }

  #addChoice(choice: JsonObject): void {
    const { delta, message, text, finish_reason: finish } = choice;
    if (isError(choice['error'])) throw errorIn(choice);
    if (isObject(delta)) {
      this.#hasDeltas = true;
      this.#addDelta(delta);
      // A whole message: of a body that is no stream. Some endpoints repeat the answer as one in their last chunk.
    } else if (isObject(message) && !this.#hasDeltas) this.#addDelta(message);
    else if (typeof text === 'string') this.#addText(text);
    this.#readUsage(choice['usage']);
    if (typeof finish !== 'string' || finish === '') return;
    if (FAILED.has(finish)) throw new EndpointError(500, NO_HEADERS, `the answer ended with ${finish}`);
    this.#finish = finish;
  }

  #addDelta(delta: JsonObject): void {
    this.#readReasoning(delta);
    for (const name in delta) {
      const value = delta[name];
      if (value === null || value === undefined) continue;
      switch (name) {
        case 'role':
          break;
        case 'content':
          this.#addContent(value);
          break;
        case 'refusal':
          if (typeof value === 'string') this.#addText(value);
          break;
        case 'tool_calls':
          if (Array.isArray(value)) for (const call of value as unknown[]) this.#calls.add(call);
          break;
        case 'function_call':
          this.#calls.add({ function: value });
          break;
        default:
          this.#others.add(name, value);
      }
    }
  }

  #readReasoning(delta: JsonObject): void {
    for (const name of REASONING) {
      const text = reasoningText(delta[name]);
      if (text === '') continue;
      this.#hasReasoningText = true;
      this.#emit('reasoning', this.#reasoningFlow.add(text));
      return;
    }
    if (this.#hasReasoningText) return;
    for (const name of BLOCKS) {
      const text = reasoningText(delta[name]);
      if (text === '') continue;
      this.#emit('reasoning', this.#reasoningFlow.add(text));
      return;
    }
  }

  #addContent(content: unknown): void {
    if (typeof content === 'string') {
      this.#addText(content);
      return;
    }
    const items: readonly unknown[] = Array.isArray(content) ? content : [content];
    this.#contentItems = items.reduce<unknown[]>(withContentItem, this.#contentItems ?? []);
    for (const item of items) {
      if (typeof item === 'string') this.#think.add(item);
      else if (isObject(item)) {
        const text = item['text'] ?? item['refusal'];
        if (typeof text === 'string') this.#think.add(text);
        else this.#emit('reasoning', this.#reasoningFlow.add(reasoningText(item['thinking'])));
      }
    }
  }

  #addText(text: string): void {
    if (text === '') return;
    if (this.#raw.length <= MAX_RAW) this.#raw += text;
    this.#think.add(text);
  }

  #emit(type: 'text' | 'reasoning', text: string): void {
    if (text === '') return;
    if (type === 'text') this.#textLength += text.length;
    this.#parts.push({ type, text });
  }

  /** Endpoints send usage once, with each chunk as a running total, or never. */
  #readUsage(usage: unknown): void {
    if (!isObject(usage)) return;
    const input = usage['prompt_tokens_details'];
    const output = usage['completion_tokens_details'];
    this.#usage = {
      inputTokens: tokens(usage['prompt_tokens'] ?? usage['input_tokens']),
      cachedInputTokens: tokens(
        (isObject(input) ? input['cached_tokens'] : null) ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'],
      ),
      outputTokens: tokens(usage['completion_tokens'] ?? usage['output_tokens']),
      reasoningTokens: tokens(isObject(output) ? output['reasoning_tokens'] : null),
    };
  }

  #reasonOf(hasCalls: boolean): ModelFinish {
    const given = this.#finish ?? 'stop';
    const reason = FINISHES[given.toLowerCase()] ?? admitText(given, MAX_NAME);
    if (reason === 'stop' && hasCalls) return 'tool_calls';
    return reason === 'tool_calls' && !hasCalls ? 'stop' : reason;
  }
}

const NONE: readonly ModelPart[] = [];
const NO_HEADERS: ReadonlyMap<string, string> = new Map();

function tokens(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}

/** The text of a string, of a block, or of a list of blocks. */
function reasoningText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(reasoningText).join('');
  if (!isObject(value)) return '';
  return reasoningText(value['text'] ?? value['thinking'] ?? value['summary'] ?? value['content']);
}

function withContentItem(items: unknown[], item: unknown): unknown[] {
  const last = items.at(-1);
  const isNext = isObject(last) && isObject(item) && last['type'] === 'text' && item['type'] === 'text';
  if (!isNext) return [...items, item];
  return [...items.slice(0, -1), { ...last, ...item, text: `${String(last['text'])}${String(item['text'])}` }];
}

function isError(error: unknown): boolean {
  return (typeof error === 'string' && error !== '') || (isObject(error) && Object.keys(error).length > 0);
}

/** An error in a stream stands for the status that it would have had. */
function errorIn(chunk: JsonObject): EndpointError {
  return new EndpointError(statusOfError(chunk), NO_HEADERS, JSON.stringify(chunk));
}
