/*
 * Writes the sample conversations beside this file, or larger ones of the same kind:
 *
 *   node docs/samples/generate.ts                        the samples of the repository
 *   node docs/samples/generate.ts --messages 100000 --output <folder>
 *
 * The same count gives the same bytes: nothing here depends on the time or on chance.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

import { assistantConversation, slackExport } from './conversations.ts';

/** Messages of the Slack sample in the repository, and conversations in the other one. */
const SAMPLE = { slack: 240, conversations: 40 };

const { values } = parseArgs({ options: { messages: { type: 'string' }, output: { type: 'string' } } });
const output = values.output ?? import.meta.dirname;
const messages = values.messages === undefined ? null : Number(values.messages);
if (messages !== null && !(Number.isSafeInteger(messages) && messages > 0)) throw new Error('--messages is a number');

await writeAssistant(messages);
if (messages === null) await writeSlack();

async function writeSlack(): Promise<void> {
  for (const [name, content] of slackExport(SAMPLE.slack)) {
    const path = join(output, 'support-team', name);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
  }
}

/** Line by line, so that a large one needs no more memory than a small one. */
async function writeAssistant(atLeast: number | null): Promise<void> {
  await mkdir(output, { recursive: true });
  const stream = createWriteStream(join(output, 'assistant.jsonl'));
  let written = 0;
  for (let index = 0; atLeast === null ? index < SAMPLE.conversations : written < atLeast; index++) {
    const conversation = assistantConversation(index);
    written += conversation.messages.length;
    if (!stream.write(`${JSON.stringify(conversation)}\n`)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
}
