import { KafkaConnection, Relay } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';

type RelayOptions = ConstructorParameters<typeof Relay>[0];
type ConnectionOptions = ConstructorParameters<typeof KafkaConnection>[0];

/** Runs a relay with a connection of its own until `stop`. */
export function runRelay(
  options: Omit<RelayOptions, 'kafka'>,
  connection: Pick<ConnectionOptions, 'brokers' | 'requestTimeoutMs'>,
) {
  const kafka = new KafkaConnection({ ...connection, log: silentLog });
  const relay = new Relay({ ...options, kafka });
  const abort = new AbortController();
  const ended = relay.run(abort.signal);
  return {
    kafka,
    get progress() {
      return relay.progress;
    },
    async stop() {
      abort.abort();
      await ended;
      await kafka.close();
    },
  };
}
