import type { Config } from '#libs/platform/config/index.ts';
import { encodePosition, type LogFeed } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import {
  KafkaConnection,
  kafkaOptionsOf,
  LogMessages,
  logTopics,
  type RefusingPartition,
  Relay,
} from '#libs/platform/kafka/index.ts';
import { settledWithin, startBackgroundJob, type RunningRole } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { observePosition } from '#services/health.ts';
import { composePublicMessages } from '#services/features.ts';

/** Longest wait for silent brokers when the process stops: nothing depends on their answers. */
const STOP_MS = 3_000;

/** Publishes the log to the configured brokers. Of all processes with this role, one is active at a time. */
export function startKafkaRelay(platform: Platform, config: Config): RunningRole {
  const { kafkaTopicPrefix, kafkaPublicEvents, kafkaAcceptLostEvent } = config;
  const { feed, store, log, metrics, tokenSecret } = platform;
  const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
  const sent = metrics.counter('relay_events_total', 'Events that this process has sent to Kafka, duplicates included');
  const failures = metrics.counter('relay_failures_total', 'Restarts of the relay of this process after an error');
  const refusals = metrics.counter(
    'relay_refusals_total',
    'Refusals of an event by a topic, of the same event at each retry',
    ['topic'],
  );
  const relay = new Relay({
    feed,
    store,
    kafka,
    acceptLostEvent: kafkaAcceptLostEvent,
    messages: new LogMessages(tokenSecret),
    publicMessages: kafkaPublicEvents
      ? composePublicMessages((error) =>
          log.error({ err: error }, 'an event that cannot be decoded is published as parley.unknown'),
        )
      : undefined,
    topics: logTopics(kafkaTopicPrefix),
    onSent: (events) => sent.add({}, events),
    onRefused({ topic, ...refusal }) {
      refusals.add({ topic });
      log.error({ topic, ...refusalDetail(refusal) }, 'kafka refuses an event; its partition waits for a retry');
    },
    onTopicProblems: (problems) =>
      problems.length > 0 && log.warn({ problems }, 'kafka: topics differ from what Parley needs'),
    onProblem(error) {
      failures.add();
      log.warn({ err: error }, 'the relay to Kafka restarts after an error');
    },
  });
  observeRelay(platform, relay);
  platform.probes.push(relayProbe(relay, feed));
  const job = startBackgroundJob({ name: 'relay', log, run: (signal) => relay.run(signal) });
  return {
    async stop() {
      await settledWithin(STOP_MS, job.stop());
      await kafka.close();
    },
  };
}

function observeRelay(platform: Platform, relay: Relay): void {
  const { metrics } = platform;
  metrics.observedGauge(
    'relay_refusing_partitions',
    'Partitions that refuse an event, by topic; they wait while the others continue',
    () => {
      const byTopic = Map.groupBy(relay.progress.refusing, ({ topic }) => topic);
      return [...byTopic].map(([topic, all]) => [{ topic }, all.length] as const);
    },
    ['topic'],
  );
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
}

/** Reports the relay's progress. It never makes a process unready, because no other part of Parley waits for Kafka. */
function relayProbe(relay: Relay, feed: LogFeed): ReadinessProbe {
  return {
    name: 'relay',
    async check() {
      const { phase, position, problem, eventsSent, refusing, topicProblems } = relay.progress;
      const head = await feed.head();
      return {
        ok: true,
        detail: {
          phase,
          problem,
          refusing: refusing.map(({ topic, ...refusal }) => ({ topic, ...refusalDetail(refusal) })),
          topic_problems: topicProblems,
          events_sent: eventsSent,
          position: position && encodePosition(position),
          head: head && encodePosition(head),
        },
      };
    },
  };
}

function refusalDetail({ partition, event, cause, after, sinceMs }: Omit<RefusingPartition, 'topic'>) {
  const position = after === 'start' ? null : encodePosition(after);
  return { partition, event, cause, position, since: new Date(sinceMs).toISOString() };
}
