import { type EntityId, newId } from '#libs/kernel/ids.ts';
import type { LiveNode, LiveSource, LiveStream } from '#libs/platform/live/index.ts';

import type { SubscriberAccess } from './access.ts';
import type { LiveCommands } from './live-commands.ts';

interface RealtimeParts extends LiveSource {
  readonly access: Pick<SubscriberAccess, 'admit' | 'check' | 'usersOf' | 'onChange'>;
  readonly commands: Pick<LiveCommands, 'run'>;
}

const MAX_SHARED_SCOPES = 100;

/** The channels that clients of this process follow, and what its websockets need besides: tickets are admitted, and commands run. */
export class RealtimeNode {
  readonly id = newId();
  readonly live: LiveNode;
  readonly access: RealtimeParts['access'];
  readonly commands: RealtimeParts['commands'];
  /** Channels. */
  readonly source: LiveSource;
  readonly #scopes = new Map<string, readonly string[]>();
  #sessions = 0;

  constructor(live: LiveNode, { log, values = [], access, commands }: RealtimeParts) {
    this.live = live;
    this.source = { log, values };
    this.access = access;
    this.commands = commands;
    live.guard(access);
  }

  /** See `LiveStreams.open`. */
  open(organizationId: EntityId, channelId: EntityId): Promise<LiveStream | null> {
    return this.live.streams.open(this.source, { organizationId, id: channelId });
  }

  openOne(organizationId: EntityId, channelId: EntityId): LiveStream | null {
    return this.live.streams.openOne(this.source, { organizationId, id: channelId });
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

  /** See `LiveNode.stop`. */
  stop(): Promise<void> {
    return this.live.stop();
  }
}
