// Strategies that choose the consumer of the next message.
import { correlationOf, streamOf, type Message } from './message.ts';
import type { GroupSettings } from './group-settings.ts';

/** A consumer as a strategy sees it. */
export type Candidate = { readonly id: string; readonly hasRoom: boolean };

export interface Strategy<C extends Candidate> {
  /** A consumer with room, or undefined when the message must wait. */
  choose(message: Message, consumers: readonly C[]): C | undefined;
  /** Whether a waiting message blocks those behind it, because all consumers are full. */
  readonly waitsInLine: boolean;
}

export function createStrategy<C extends Candidate>(name: GroupSettings['strategy']): Strategy<C> {
  if (name === 'RoundRobin') return roundRobin();
  if (name === 'PinnedByCorrelation') return pinned(correlationOf);
  return name === 'Pinned' ? pinned(streamOf) : dispatchToSingle();
}

/** Each consumer with room in turn. */
function roundRobin<C extends Candidate>(): Strategy<C> {
  let last: C | undefined;
  return {
    waitsInLine: true,
    choose(_, consumers) {
      const start = (last ? consumers.indexOf(last) : -1) + 1;
      const turns = [...consumers.slice(start), ...consumers.slice(0, start)];
      const next = turns.find(({ hasRoom }) => hasRoom);
      if (next) last = next;
      return next;
    },
  };
}

function dispatchToSingle<C extends Candidate>(): Strategy<C> {
  return { waitsInLine: true, choose: (_, consumers) => consumers.find(({ hasRoom }) => hasRoom) };
}

/**
 * Delivers all events of one key to one consumer. While it is full they wait, and events of other keys overtake
 * them. Chooses by highest random weight, so that a consumer that joins or leaves moves few streams.
 */
function pinned<C extends Candidate>(keyOf: (message: Message) => string): Strategy<C> {
  return {
    waitsInLine: false,
    choose(message, consumers) {
      const key = keyOf(message);
      let best: C | undefined;
      let bestWeight = -1;
      for (const consumer of consumers) {
        const weight = hash(`${consumer.id} ${key}`);
        if (weight > bestWeight) [best, bestWeight] = [consumer, weight];
      }
      return best?.hasRoom ? best : undefined;
    },
  };
}

/** FNV-1a with a final mix, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
