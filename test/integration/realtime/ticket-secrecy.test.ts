import { request } from 'node:http';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';

let parley: ParleyProcess;

beforeAll(async () => {
  parley = await startParleyProcess({ env: { LOG_LEVEL: 'trace' } });
});
afterAll(() => parley.stop());

/** Asks for an upgrade; whatever comes of it. */
function askForUpgrade(path: string, protocols?: string): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...(protocols !== undefined && { 'sec-websocket-protocol': protocols }),
    };
    const call = request({ host: '127.0.0.1', port: parley.port, path, headers }, (answer) => {
      answer.resume();
      answer.on('end', resolve);
    });
    call.on('upgrade', (_answer, socket) => {
      socket.destroy();
      resolve();
    });
    call.on('error', () => resolve());
    call.end();
  });
}

it('a ticket is in no line of the log, whichever way it came, and whatever was wrong with it', async () => {
  const channel = asRecord((await parley.api.post('/api/v1/channels', { name: 'A channel' })).json());
  const path = `/api/v1/channels/${String(channel['id'])}`;
  const newTicket = async (): Promise<string> =>
    String(asRecord((await parley.api.post(`${path}/websocket_ticket`)).json())['value']);
  const tickets = [await newTicket(), await newTicket(), await newTicket(), await newTicket()] as const;

  await askForUpgrade(`${path}/websocket?ticket=${tickets[0]}`);
  await askForUpgrade(`${path}/websocket`, `parley.v1, ticket.${tickets[1]}`);
  await askForUpgrade(`${path}/websocket`, `ticket.${tickets[1]}`);
  await askForUpgrade(`/api/v1/channels/another/websocket?ticket=${tickets[2]}&x=1`, `ticket.${tickets[2]}`);
  await parley.api.get(`${path}?ticket=${tickets[3]}`);
  await parley.api.get(`/nowhere/${tickets[3]}`);
  await parley.api.post(`${path}/interactions`, `{"ticket":"${tickets[3]}`);

  // Each request leaves a line at this level, so that there is something to look through.
  await eventually(() => parley.output().includes('/api/v1/channels/:id/interactions'));
  for (const ticket of tickets) {
    expect(ticket).toHaveLength('parley_ticket_'.length + 43);
    expect(parley.output()).not.toContain(ticket.slice(-43));
  }
});
