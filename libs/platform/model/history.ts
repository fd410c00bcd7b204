import type { ModelMessage } from './model.ts';

/** UTF-8 bytes of a token: about 4 of English text; fewer bytes of code and other languages count as one. */
const BYTES_PER_TOKEN = 3;
/** The role, separators and ids of a message. */
const TOKENS_OF_MESSAGE = 8;

/** Stands for the result of a tool that was dropped: a call without a result is refused by endpoints. */
export const DROPPED_RESULT = '[The result was dropped to keep the conversation short.]';
const CUT = '\n[…]\n';

/** Tokens of a text, rather too many than too few: the tokenizer of the model is not known. */
export function estimatedTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/**
 * The conversation within a number of estimated tokens. Drops the oldest first: the results of tools, then turns, which
 * are a message of a user and all that follows it. The last turn is kept; if it is too long by itself, its longest texts
 * are cut in the middle.
 */
export function boundedHistory(messages: readonly ModelMessage[], maxTokens: number): ModelMessage[] {
  const kept = [...messages];
  let tokens = kept.reduce((sum, message) => sum + tokensOf(message), 0);
  for (const [index, message] of kept.entries()) {
    if (tokens <= maxTokens) return kept;
    // The results that follow the last call are what the model is to answer from.
    if (message.role !== 'tool' || isAfterLastCall(kept, index)) continue;
    const dropped = { ...message, result: DROPPED_RESULT };
    const saved = tokensOf(message) - tokensOf(dropped);
    if (saved <= 0) continue;
    kept[index] = dropped;
    tokens -= saved;
  }
  while (tokens > maxTokens && kept.length > 1) {
    const count = firstTurn(kept);
    if (count === kept.length) break;
    tokens -= kept.splice(0, count).reduce((sum, message) => sum + tokensOf(message), 0);
  }
  return tokens <= maxTokens ? kept : withCutTexts(kept, tokens - maxTokens);
}

function firstTurn(messages: readonly ModelMessage[]): number {
  const next = messages.findIndex(({ role }, index) => index > 0 && role === 'user');
  return next === -1 ? messages.length : next;
}

function isAfterLastCall(messages: readonly ModelMessage[], index: number): boolean {
  return messages.slice(index).every(({ role }) => role === 'tool');
}

/** Cuts the longest texts of what must remain. */
function withCutTexts(messages: readonly ModelMessage[], excess: number): ModelMessage[] {
  const cut = [...messages];
  let over = excess;
  const longest = cut.map((_, index) => index).toSorted((a, b) => tokensOf(cut[b]!) - tokensOf(cut[a]!));
  for (const index of longest) {
    const message = cut[index];
    if (over <= 0 || message === undefined) break;
    const before = tokensOf(message);
    cut[index] = shortened(message, over);
    over -= before - tokensOf(cut[index]);
  }
  return cut;
}

function shortened(message: ModelMessage, tokens: number): ModelMessage {
  const text = message.role === 'tool' ? message.result : message.text;
  const bytes = Buffer.from(text);
  const room = Math.max(0, bytes.length - Buffer.byteLength(CUT) - tokens * BYTES_PER_TOKEN);
  if (room === 0 && bytes.length <= Buffer.byteLength(CUT)) return message;
  const half = Math.floor(room / 2);
  const head = wholeCharacters(bytes.subarray(0, half));
  const tail = wholeCharacters(bytes.subarray(bytes.length - half));
  const short = `${head}${CUT}${tail}`;
  if (message.role === 'tool') return { ...message, result: short };
  if (message.role === 'user') return { ...message, text: short };
  // The content as it was sent would be repeated in the place of the text.
  const { content: _whole, ...others } = message.sent?.message ?? {};
  return { ...message, text: short, ...(message.sent && { sent: { ...message.sent, message: others } }) };
}

/** Without the parts of characters that a cut has left at the ends. */
function wholeCharacters(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).replace(/^\uFFFD+|\uFFFD+$/g, '');
}

function tokensOf(message: ModelMessage): number {
  switch (message.role) {
    case 'user':
      return TOKENS_OF_MESSAGE + estimatedTokens(message.text);
    case 'assistant':
      return (
        TOKENS_OF_MESSAGE +
        estimatedTokens(message.text) +
        // Calls are part of what was sent.
        estimatedTokens(JSON.stringify(message.sent?.message ?? message.toolCalls))
      );
    case 'tool':
      return TOKENS_OF_MESSAGE + estimatedTokens(message.result);
  }
}
