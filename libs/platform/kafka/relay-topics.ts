import kafkajs from 'kafkajs';
import { Fault } from '#libs/kernel/faults.ts';
import type { KafkaConnection, TopicSpec } from './connection.ts';
import { describeError, isUnknownTopic, kafkaFault } from './kafka-errors.ts';
import { specsOf, type LogTopics } from './topics.ts';

// Node does not recognize this among the named exports of kafkajs, which is CommonJS.
const { ConfigResourceTypes } = kafkajs;

/**
 * Creates missing topics, and compares the others with what Parley needs.
 *
 * @returns one sentence for each difference
 * @throws the errors of all topics but the public one, which must not stop the others
 */
export async function prepareTopics(
  kafka: KafkaConnection,
  topics: LogTopics,
  hasPublicEvents: boolean,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const spec of specsOf(topics, hasPublicEvents)) {
    try {
      await kafka.ensureTopics([spec]);
      problems.push(...(await problemsOf(kafka, spec)));
    } catch (error) {
      if (spec.topic !== topics.events) throw error;
      problems.push(`${spec.topic}: ${describeError(error)}`);
    }
  }
  return problems;
}

function problemsOf(
  kafka: KafkaConnection,
  { topic, partitions, settings = {} }: TopicSpec,
): Promise<readonly string[]> {
  return kafka.withAdmin(async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const count = topics[0]?.partitions.length ?? 0;
    const problems: string[] = [];
    if (count < partitions) {
      problems.push(`${topic} has ${count} partition${count === 1 ? '' : 's'}; Parley creates ${partitions}`);
    }
    const configNames = Object.keys(settings);
    if (configNames.length === 0) return problems;
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configNames };
    const configs = await admin
      .describeConfigs({ includeSynonyms: false, resources: [resource] })
      .catch((error: unknown) => {
        if (kafkaFault(error) instanceof Fault) throw error;
        problems.push(`the settings of ${topic} cannot be read: ${describeError(error)}`);
        return null;
      });
    const values = new Map(
      configs?.resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]),
    );
    for (const [name, needed] of Object.entries(settings)) {
      const value = values.get(name);
      if (value === undefined || isEnough(value, needed)) continue;
      problems.push(`${topic} has ${name}=${value}; Parley needs ${needed}`);
    }
    return problems;
  });
}

/** Numbers are least values. */
function isEnough(value: string, needed: string): boolean {
  return /^\d+$/.test(needed) ? Number(value) >= Number(needed) : value === needed;
}

/** Partition count of a topic; `otherwise` if Kafka does not describe it. */
export async function partitionCount(kafka: KafkaConnection, topic: string, otherwise: number): Promise<number> {
  try {
    const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
    return topics[0]?.partitions.length || otherwise;
  } catch (error) {
    if (error instanceof Fault && !isUnknownTopic(error.cause)) throw error;
    return otherwise;
  }
}
