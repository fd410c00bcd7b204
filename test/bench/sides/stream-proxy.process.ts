/** Passes requests to an endpoint, and its answers back as they arrive: the least that there can be between model and client. */
import { createServer, request as connect } from 'node:http';
import type { AddressInfo } from 'node:net';

import { answerTasks } from '../child-process.ts';

answerTasks(async ({ port }: { readonly port: number }): Promise<{ port: number }> => {
  const server = createServer((incoming, outgoing) => {
    const upstream = connect({ host: '127.0.0.1', port, method: 'POST', path: incoming.url ?? '/' }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': 'text/event-stream' });
      answer.pipe(outgoing);
    });
    upstream.on('error', () => outgoing.destroy());
    incoming.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port };
});
