import type { Config, VariableName } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { Features } from './features.ts';

/** Parts that the roles of one process share; the process creates it. */
export interface RoleContext {
  readonly platform: Platform;
  readonly features: Features;
  /** Resolves once the check of the log has passed (`refuseLostLog`). Never rejects. */
  readonly logChecked: Promise<void>;
}

/** A part of Parley that runs in its own process, or with others in `standalone`. */
export interface Role {
  readonly name: string;
  /** For the help of `npx parley`. */
  readonly does: string;
  /** Variables without which its own process does not start. */
  readonly needs: readonly VariableName[];
  /** Whether it has an HTTP server. A process in which no role listens serves health and metrics alone. */
  readonly listens?: boolean;
  /** Whether its own process creates the first organization and its API key. */
  readonly bootstraps?: boolean;
  /** Resolves when the role is working. If it rejects, it has stopped everything that it had started. */
  start(context: RoleContext, config: Config): Promise<RunningRole>;
}
