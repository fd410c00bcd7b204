/** The conversations of docs/samples as interactions to post: talks of customers with an assistant and its tools. */
import { parseOpenai } from '#libs/features/imports/openai.format.ts';
import type { PostInteractionBody } from '#libs/features/interactions/index.ts';

import { assistantConversation } from '../../docs/samples/conversations.ts';

export interface SampleMessage {
  /** Its name, and that of the message that it hangs below. */
  readonly key: string;
  readonly parentKey: string | null;
  readonly body: PostInteractionBody;
}

/** The first `count` messages of as many conversations as that takes; the same for the same count, always. */
export function sampleMessages(count: number): SampleMessage[] {
  const messages: SampleMessage[] = [];
  for (let index = 0; messages.length < count; index++) {
    const line = JSON.stringify(assistantConversation(index));
    for (const { key, parentKey, body } of parseOpenai(line, { file: 'samples', line: null }).messages) {
      const named = (name: string) => `${index} ${name}`;
      messages.push({ key: named(key), parentKey: parentKey === null ? null : named(parentKey), body });
    }
  }
  return messages.slice(0, count);
}
