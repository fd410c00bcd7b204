/** The conversations of docs/samples as interactions to post: customers with an assistant and its tools. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseMessages } from '#services/cli/import/messages.format.ts';
import type { PostInteractionBody } from '#libs/features/channels/index.ts';

const SAMPLES = join(import.meta.dirname, '../../docs/samples/assistant.jsonl');

export interface SampleMessage {
  /** Its name, and that of its parent. */
  readonly key: string;
  readonly parentKey: string | null;
  readonly body: PostInteractionBody;
}

/** The messages of the sample, conversation after conversation. */
export function sampleMessages(): SampleMessage[] {
  const lines = readFileSync(SAMPLES, 'utf8').trimEnd().split('\n');
  return lines.flatMap((line, conversation) =>
    parseMessages('openai', line, { file: 'samples', line: null }).messages.map(({ key, parentKey, body }) => {
      const named = (name: string) => `${conversation} ${name}`;
      return { key: named(key), parentKey: parentKey === null ? null : named(parentKey), body };
    }),
  );
}
