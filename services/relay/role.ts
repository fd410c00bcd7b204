import type { Config } from '#libs/platform/config/index.ts';
import { type RunningRole, StartRefusal } from '#libs/platform/lifecycle/index.ts';
import type { RoleContext } from '#services/role.ts';

/** Publishes the log to Kafka, if brokers are configured. Without them, the client of Kafka is not even loaded. */
export async function start({ platform }: RoleContext, config: Config): Promise<RunningRole> {
  if (config.kafkaBrokers.length > 0) return (await import('./kafka-relay.ts')).startKafkaRelay(platform, config);
  if (config.roles.includes('relay')) throw new StartRefusal('the role relay needs KAFKA_BROKERS=host:port,…');
  return { stop: async () => undefined };
}
