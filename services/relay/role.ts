import type { Config } from '#libs/platform/config/index.ts';
import { encodePosition } from '#libs/platform/eventstore/index.ts';
import type { LogFeed } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { KafkaConnection, kafkaOptionsOf, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { pause, startBackgroundJob, StartRefusal } from '#libs/platform/lifecycle/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { observePosition } from '#services/health.ts';
import type { RoleContext } from '#services/role.ts';
import { composePublicMessages } from '#services/features.ts';

/** A silent broker is not waited for when the process stops: nothing depends on its answers. */
const STOP_MS = 3_000;

/** Carries the log to Kafka, if there is one; of all processes with this role, one does it at a time. */
export async function start({ platform }: RoleContext, config: Config): Promise<RunningRole> {
  const { kafkaBrokers, kafkaTopicPrefix, kafkaPublicEvents, roles } = config;
  if (kafkaBrokers.length === 0) {
    if (roles.includes('relay')) throw new StartRefusal('the role relay needs KAFKA_BROKERS=host:port,…');
    return { stop: async () => undefined };
  }
  const { feed, log, metrics, tokenSecret } = platform;
  const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
  const sent = metrics.counter(
    'relay_events_total',
    'Events that this process has sent to Kafka, repetitions included',
  );
  const failures = metrics.counter('relay_failures_total', 'How often the relay of this process had to begin again');
  const relay = new Relay({
    feed,
    kafka,
    messages: new LogMessages(tokenSecret),
    publicMessages: kafkaPublicEvents
      ? composePublicMessages((error) => log.error({ err: error }, 'other teams are told nothing of an event'))
      : undefined,
    topics: logTopics(kafkaTopicPrefix),
    onSent: (events) => sent.add({}, events),
    onProblem(error) {
      failures.add();
      log.warn({ err: error }, 'the relay to Kafka begins again');
    },
  });
  metrics.observedGauge('relay_active', 'Whether this process is the one that carries the log to Kafka', () =>
    relay.progress.phase === 'active' ? 1 : 0,
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
      const patience = new AbortController();
      await Promise.race([job.stop(), pause(STOP_MS, patience.signal)]);
      patience.abort();
      await kafka.close();
    },
  };
}

/** Tells how it is, and is no reason to take a process out of service: nobody else of Parley waits for Kafka. */
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
