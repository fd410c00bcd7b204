import type { Config } from '#libs/platform/config/index.ts';
import { encodePosition, type LogFeed } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { KafkaConnection, kafkaOptionsOf, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { settledWithin, startBackgroundJob, StartRefusal, type RunningRole } from '#libs/platform/lifecycle/index.ts';
import { observePosition } from '#services/health.ts';
import type { RoleContext } from '#services/role.ts';
import { composePublicMessages } from '#services/features.ts';

/** Longest wait for silent brokers when the process stops: nothing depends on their answers. */
const STOP_MS = 3_000;

/** Publishes the log to Kafka, if brokers are configured. Of all processes with this role, one is active at a time. */
export async function start({ platform }: RoleContext, config: Config): Promise<RunningRole> {
  const { kafkaBrokers, kafkaTopicPrefix, kafkaPublicEvents, roles } = config;
  if (kafkaBrokers.length === 0) {
    if (roles.includes('relay')) throw new StartRefusal('the role relay needs KAFKA_BROKERS=host:port,…');
    return { stop: async () => undefined };
  }
  const { feed, log, metrics, tokenSecret } = platform;
  const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
  const sent = metrics.counter('relay_events_total', 'Events that this process has sent to Kafka, duplicates included');
  const failures = metrics.counter('relay_failures_total', 'Restarts of the relay of this process after an error');
  const relay = new Relay({
    feed,
    kafka,
    messages: new LogMessages(tokenSecret),
    publicMessages: kafkaPublicEvents
      ? composePublicMessages((error) =>
          log.error({ err: error }, 'an event that cannot be decoded is published as parley.unknown'),
        )
      : undefined,
    topics: logTopics(kafkaTopicPrefix),
    onSent: (events) => sent.add({}, events),
    onProblem(error) {
      failures.add();
      log.warn({ err: error }, 'the relay to Kafka restarts after an error');
    },
  });
  metrics.observedGauge(
    'relay_active',
    '1 in the process that publishes the log to Kafka, 0 in those on standby',
    () => (relay.progress.phase === 'active' ? 1 : 0),
  );
  observePosition(platform, {
    name: 'relay_position',
    help: 'Commit position up to which Kafka has acknowledged the log; of the active relay',
    read: () => relay.progress.position,
  });
  platform.probes.push(relayProbe(relay, feed));
  const job = startBackgroundJob({ name: 'relay', log, run: (signal) => relay.run(signal) });
  return {
    async stop() {
      await settledWithin(STOP_MS, job.stop());
      await kafka.close();
    },
  };
}

/** Reports the relay's progress. It never makes a process unready, because no other part of Parley waits for Kafka. */
function relayProbe(relay: Relay, feed: LogFeed): ReadinessProbe {
  return {
    name: 'relay',
    async check() {
      const { phase, position, problem, eventsSent } = relay.progress;
      const head = await feed.head();
      return {
        ok: true,
        detail: {
          phase,
          problem,
          events_sent: eventsSent,
          position: position && encodePosition(position),
          head: head && encodePosition(head),
        },
      };
    },
  };
}
