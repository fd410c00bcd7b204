import { newId } from '#libs/kernel/ids.ts';
import { LiveNode, type LiveNodeParts, type LivePlatform } from '#libs/platform/live/index.ts';

import type { SubscriberAccess } from './access.ts';
import type { LiveCommands } from './live-commands.ts';

export interface RealtimeParts extends LiveNodeParts {
  readonly access: Pick<SubscriberAccess, 'admit' | 'check' | 'usersOf' | 'onChange'>;
  readonly commands: Pick<LiveCommands, 'run'>;
}

const MAX_SHARED_SCOPES = 100;

/** The subscribers of this process, and what its websockets need besides: tickets are admitted, and commands run. */
export class RealtimeNode extends LiveNode {
  readonly id = newId();
  readonly access: RealtimeParts['access'];
  readonly commands: RealtimeParts['commands'];
  readonly #scopes = new Map<string, readonly string[]>();
  #sessions = 0;

  constructor(platform: LivePlatform, parts: RealtimeParts, tickMs?: number) {
    super(platform, parts, tickMs);
    this.access = parts.access;
    this.commands = parts.commands;
  }

  /** A number that identifies a session within this node. */
  nextSession(): number {
    return (this.#sessions += 1);
  }

  /** Returns one array for equal scopes, which saves memory: most keys have one of a few sets. */
  shared(scopes: readonly string[]): readonly string[] {
    const name = scopes.join(' ');
    const known = this.#scopes.get(name);
    if (known === undefined && this.#scopes.size < MAX_SHARED_SCOPES) this.#scopes.set(name, scopes);
    return known ?? scopes;
  }
}
