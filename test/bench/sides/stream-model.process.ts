/** A model endpoint whose tokens hold the time at which they were written, on the clock that all processes share. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { answerTasks } from '../child-process.ts';

export interface StreamModelTask {
  readonly tokens: number;
  /** From the request to the first token. */
  readonly firstMs: number;
  readonly intervalMs: number;
}

answerTasks(async (task: StreamModelTask): Promise<{ port: number }> => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      stream(response, task);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port };
});

function stream(response: ServerResponse, { tokens, firstMs, intervalMs }: StreamModelTask): void {
  const startedAt = performance.now() + firstMs;
  let written = 0;
  const next = (): void => {
    if (response.destroyed) return;
    // A late timer writes what is due.
    while (written < tokens && performance.now() >= startedAt + written * intervalMs) {
      response.write(chunk({ content: `@${process.hrtime.bigint() / 1_000n}@ ` }));
      written += 1;
    }
    if (written < tokens) setTimeout(next, Math.max(0, startedAt + written * intervalMs - performance.now()));
    else response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
  };
  next();
}

function chunk(delta: object, finish_reason: string | null = null): string {
  return `data: ${JSON.stringify({ id: 'a', model: 'stream', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
}
