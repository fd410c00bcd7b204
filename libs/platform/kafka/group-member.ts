import type { Consumer } from 'kafkajs';
import type { KafkaConnection } from './connection.ts';

/** The shortest that brokers allow: the partitions of a silent member are assigned to others after it. */
const SESSION_MS = 6_000;
/** How often a member sends heartbeats, if it can: see {@link groupMember}. */
export const HEARTBEAT_MS = 1_000;

export interface MembershipOptions {
  readonly groupId: string;
  /**
   * How long a fetch waits for messages. kafkajs sends heartbeats, and notices that it must stop, only between fetches
   * and where the handler of a batch calls for it.
   */
  readonly fetchMs: number;
}

/** A consumer, not connected yet, whose partitions other members take over soon after it died. Creates no topics. */
export function groupMember(kafka: KafkaConnection, { groupId, fetchMs }: MembershipOptions): Consumer {
  return kafka.consumer({
    groupId,
    sessionTimeout: SESSION_MS,
    rebalanceTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    maxWaitTimeInMs: fetchMs,
    allowAutoTopicCreation: false,
    // Parley writes no transactions, and those of others would delay the messages behind them.
    readUncommitted: true,
  });
}
