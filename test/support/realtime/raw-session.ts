/** A raw websocket that was admitted with a ticket. */
import type { ParleyProcess } from '#test/support/parley-process.ts';

import { RawWebsocket } from './raw-websocket.ts';
import { newTicket } from './subscriber.ts';

export const websocketPath = (channelId: string): string => `/api/v1/channels/${channelId}/websocket`;

/** Resolves after `hello`; with `resume` (its members), after `caught_up`. */
export async function openRaw(
  { port, api }: Pick<ParleyProcess, 'port' | 'api'>,
  channelId: string,
  { resume }: { readonly resume?: object } = {},
): Promise<RawWebsocket> {
  const ticket = await newTicket(api, channelId);
  const socket = await RawWebsocket.open(port, websocketPath(channelId), {
    'sec-websocket-protocol': `parley.v1, ticket.${ticket}`,
  });
  await socket.until(({ texts }) => texts.some((text) => text.startsWith('{"frame":"hello"')));
  if (resume !== undefined) {
    await socket.sendText(JSON.stringify({ frame: 'resume', ...resume }));
    await socket.until(({ texts }) => texts.some((text) => text.startsWith('{"frame":"caught_up"')));
  }
  return socket;
}

/** Codes of the `error` frames that came. */
export function errorsIn({ texts }: RawWebsocket): string[] {
  return texts
    .map((text) => JSON.parse(text) as { frame: string; code: string })
    .filter(({ frame }) => frame === 'error')
    .map(({ code }) => code);
}
