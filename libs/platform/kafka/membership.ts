import type { Consumer } from 'kafkajs';
import type { KafkaConnection } from './connection.ts';

/** The shortest that brokers allow: so long after it fell silent, what was a member's goes to others. */
const SESSION_MS = 6_000;
/** How often a member tells that it is alive, if it gets to it: see {@link groupMember}. */
export const HEARTBEAT_MS = 1_000;

export interface MembershipOptions {
  readonly groupId: string;
  /**
   * How long a fetch waits for news. kafkajs sends heartbeats, and notices that it is to stop, only between fetches
   * and where the handler of a batch asks for it.
   */
  readonly fetchMs: number;
}

/** A consumer, not connected yet, whose work others of its group take over soon after it died. It makes no topics. */
export function groupMember(kafka: KafkaConnection, { groupId, fetchMs }: MembershipOptions): Consumer {
  return kafka.consumer({
    groupId,
    sessionTimeout: SESSION_MS,
    rebalanceTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    maxWaitTimeInMs: fetchMs,
    allowAutoTopicCreation: false,
    // Nothing that we wait for is in a transaction, and somebody else's would hold up what lies behind it.
    readUncommitted: true,
  });
}
