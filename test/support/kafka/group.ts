/** Members of a consumer group as the broker lists them, and whether the partitions are assigned correctly. */
import { AssignerProtocol } from 'kafkajs';

import { plainKafka } from './plain-kafka.ts';

export interface GroupMember {
  readonly id: string;
  /** Partitions of the topic that was asked for, ascending. */
  readonly partitions: readonly number[];
}

export interface Group {
  /** `Stable` while no member joins or leaves. */
  readonly state: string;
  readonly members: readonly GroupMember[];
}

export async function describeGroup(brokers: readonly string[], groupId: string, topic: string): Promise<Group> {
  const admin = plainKafka(brokers).admin();
  await admin.connect();
  try {
    const { groups } = await admin.describeGroups([groupId]);
    const [group] = groups;
    const members = (group?.members ?? []).map(({ memberId, memberAssignment }) => {
      const assigned = memberAssignment.length > 0 ? AssignerProtocol.MemberAssignment.decode(memberAssignment) : null;
      return { id: memberId, partitions: (assigned?.assignment[topic] ?? []).toSorted((a, b) => a - b) };
    });
    return { state: group?.state ?? 'Dead', members };
  } finally {
    await admin.disconnect();
  }
}

/**
 * One line per problem; empty if the group has that many members, each has partitions, and each partition has exactly
 * one member.
 */
export function groupProblems(
  { state, members }: Group,
  wanted: { readonly members: number; readonly partitions: number },
): string[] {
  const problems: string[] = [];
  if (state !== 'Stable') problems.push(`unsettled: the group is ${state}`);
  if (members.length !== wanted.members) problems.push(`members: ${members.length} instead of ${wanted.members}`);
  for (const { id, partitions } of members) if (partitions.length === 0) problems.push(`idle: ${id} has nothing`);
  for (let partition = 0; partition < wanted.partitions; partition++) {
    const holders = members.filter(({ partitions }) => partitions.includes(partition)).length;
    if (holders === 0) problems.push(`unassigned: no member has partition ${partition}`);
    if (holders > 1) problems.push(`duplicate: ${holders} have partition ${partition}`);
  }
  return problems;
}
