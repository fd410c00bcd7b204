import type { z } from 'zod';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { Principal } from './auth.ts';
import { parseInput } from './validation/validator.ts';

/** The principal of a socket: the socket ends with its key, so commands need not know when that is. */
export type LiveCaller = Omit<Principal, 'expiresAtMs'>;

/** A command that came over a socket: who sends it, and the channel that the socket is open on. */
export interface LiveCommandCall<Data> {
  readonly context: CommandContext;
  readonly principal: LiveCaller;
  readonly channelId: EntityId;
  readonly data: Data;
}

/** One type of command that a socket may send, described by the feature that does it. */
export interface LiveCommandType {
  /** Such as `interaction.post`. */
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType;
  /** Whether it leaves events: then a command that is sent again must not run twice. */
  readonly isDurable: boolean;
  /**
   * @returns the revision that it left the channel's stream at; null for what leaves no event
   * @throws what the routes throw: `HttpError`, `ValidationFailure`, `Fault`
   */
  run(call: LiveCommandCall<unknown>): Promise<StreamRevision | null>;
}

/** Describes a command by its data, which are judged as the body of a request is, in the same words. */
export function liveCommand<Data>(of: {
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType<Data>;
  readonly isDurable: boolean;
  run(call: LiveCommandCall<Data>): Promise<StreamRevision | null>;
}): LiveCommandType {
  const { type, summary, data, isDurable } = of;
  return {
    type,
    summary,
    data,
    isDurable,
    run: async (call) => of.run({ ...call, data: parseInput(data, call.data) }),
  };
}
