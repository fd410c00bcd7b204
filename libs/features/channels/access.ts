import { StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { ChannelAccess as ChannelAccessPort, Principal } from '#libs/platform/http/index.ts';
import { type Announcements, FreshReads } from '#libs/platform/announcements/index.ts';

import type { Channels } from './channels.ts';

const MAX_BYTES = 32 * 1024 * 1024;
/** Memory of a user in a set, and of a set: measured about 100 bytes, with ids. */
const USER_BYTES = 128;

type Member = Pick<Principal, 'organizationId' | 'principalId'>;

/**
 * Decides which channels members may come into: those in which their users take part, by the log. See the port, and
 * `FreshReads` for how long a decision is based on one read.
 *
 * Guarantees: a user that was removed is refused at once by this process, and by others when the announcement arrives or they
 * notice that announcements do not arrive; after 35 s at most. A user that was added is admitted at once.
 */
export class ChannelAccess implements ChannelAccessPort {
  /** Users by organization and channel. */
  readonly #reads: FreshReads<ReadonlySet<EntityId>>;

  constructor(channels: Pick<Channels, 'usersNow'>, announcements: Announcements) {
    this.#reads = new FreshReads({
      read: async (name) => {
        const [organizationId = '', channelId = ''] = name.split(' ');
        return channels.usersNow(organizationId, channelId).catch((error: unknown) => {
          if (error instanceof StreamGone) return null;
          throw error;
        });
      },
      announcements,
      onChange(change, reads) {
        if (change.kind === 'participant-removed') reads.invalidate(nameOf(change, change.channelId));
      },
      max: MAX_BYTES,
      bytesOf: ({ size }) => (size + 1) * USER_BYTES,
    });
  }

  /** See the port. */
  admits(member: Member, channelId: EntityId): boolean | Promise<boolean> {
    const isAdmitted = this.#reads.current(nameOf(member, channelId))?.value.has(member.principalId);
    return isAdmitted === true || this.admission(member, channelId).then((admission) => admission !== null);
  }

  /** As `admits`, with the age of the read behind it in milliseconds; null for a refusal. */
  async admission(member: Member, channelId: EntityId): Promise<{ readonly ageMs: number } | null> {
    const name = nameOf(member, channelId);
    let reading = this.#reads.current(name) ?? null;
    // A refusal needs a read that began now: the user may have been added since the one before began.
    for (let reads = this.#reads.isReading(name) ? 2 : 1; reads > 0; reads--) {
      if (reading?.value.has(member.principalId) === true) break;
      reading = await this.#reads.read(name);
    }
    return reading?.value.has(member.principalId) === true ? { ageMs: this.#reads.age(reading) } : null;
  }

  /** Filters the channels that the member may come into, in their order. */
  async admitted(member: Member, channelIds: readonly EntityId[]): Promise<ReadonlySet<EntityId>> {
    const decisions = await Promise.all(channelIds.map((id) => this.admits(member, id)));
    return new Set(channelIds.filter((_, index) => decisions[index]));
  }
}

/** No id contains a space. */
function nameOf({ organizationId }: Pick<Member, 'organizationId'>, channelId: EntityId): string {
  return `${organizationId} ${channelId}`;
}
