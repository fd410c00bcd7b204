/** Events as other applications, tools and operators write them to the event store that Parley uses. */
import { binaryEvent, jsonEvent, type EventData, type EventStoreDBClient } from '@eventstore/db-client';

import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { newId } from '#libs/kernel/ids.ts';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
const link = (target: string): EventData => binaryEvent({ type: '$>', data: bytes(target) });

/** The client of EventStoreDB, which writes whatever it is given. */
export async function withForeignClient<T>(url: string, use: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
  const client = connectClient(url);
  try {
    return await use(client);
  } finally {
    await client.dispose();
  }
}

export const foreignEvents: readonly (readonly [what: string, event: () => EventData])[] = [
  ['without metadata', () => jsonEvent({ type: 'UserRegistered', data: { name: 'Ada' } })],
  ['of a type of Parley, without metadata', () => jsonEvent({ type: 'ChannelRenamed.v1', data: { name: 'Stolen' } })],
  [
    'of a type of Parley, with the conventions of EventStoreDB',
    () =>
      jsonEvent({
        type: 'InteractionPosted.v1',
        data: { content: 'hello' },
        metadata: { $correlationId: newId(), $causationId: newId(), at: 'zzz' },
      }),
  ],
  [
    'with an organization of its own',
    () => jsonEvent({ type: 'UserInvited', data: {}, metadata: { organizationId: 'acme', userId: 7 } }),
  ],
  ['whose metadata is a text', () => jsonEvent({ type: 'Noted', data: {}, metadata: bytes('"a text"') })],
  ['whose metadata is no JSON', () => jsonEvent({ type: 'Noted', data: {}, metadata: bytes('{"at":') })],
  ['whose data is a text', () => jsonEvent({ type: 'Noted', data: 'a text' as unknown as object as never })],
  ['of bytes', () => binaryEvent({ type: 'ChannelRenamed.v1', data: Uint8Array.from([0, 255, 0xc3, 0x28]) })],
  ['without content', () => binaryEvent({ type: 'Nothing', data: new Uint8Array() })],
  ['that links to nothing', () => link('7@nowhere')],
  ['of a system type', () => jsonEvent({ type: '$statsCollected', data: {} })],
];
