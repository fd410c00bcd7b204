import type { z } from 'zod';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { Principal } from './auth.ts';
import type { OwnField } from './idempotency.ts';
import { parseInput } from './validation/validator.ts';

/** The principal of a socket. The socket closes when its key expires, so commands do not need the expiry. */
export type LiveCaller = Omit<Principal, 'expiresAtMs'>;

/** A command from a socket: its sender, and the channel of the socket. */
export interface LiveCommandCall<Data> {
  readonly context: CommandContext;
  readonly principal: LiveCaller;
  readonly channelId: EntityId;
  readonly data: Data;
}

/** A type of command that sockets may send, declared by the feature that runs it. */
export interface LiveCommandType {
  /** For example `interaction.post`. */
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType;
  /** Whether it appends events: a repeated command then must not run twice. */
  readonly isDurable: boolean;
  /** As `ownField` of a route, for a command whose outcome needs nothing of the read model. The data are not validated yet. */
  ownField?(call: LiveCommandCall<unknown>): OwnField | undefined;
  /**
   * @returns the revision of the channel's stream after it; null if it appends no event
   * @throws the errors of routes: `HttpError`, `ValidationFailure`, `Fault`
   */
  run(call: LiveCommandCall<unknown>): Promise<StreamRevision | null>;
}

/** Declares a command whose data are validated like the body of a request, with the same errors. */
export function liveCommand<Data>(
  of: Omit<LiveCommandType, 'data' | 'run'> & {
    readonly data: z.ZodType<Data>;
    run(call: LiveCommandCall<Data>): Promise<StreamRevision | null>;
  },
): LiveCommandType {
  return { ...of, run: async (call) => of.run({ ...call, data: parseInput(of.data, call.data) }) };
}
