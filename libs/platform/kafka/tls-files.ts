import { readFileSync } from 'node:fs';
import { createSecureContext, type ConnectionOptions } from 'node:tls';
import type { KafkaTls } from '#libs/platform/config/index.ts';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';

type Pems = Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>;
type PemFile = NonNullable<KafkaTls['ca']>;

/**
 * TLS options whose members are read from the files of certificates and keys each time: kafkajs copies them for each
 * connection, and files are replaced while Parley runs. While files cannot be used, such as a key without its new
 * certificate, the former ones are, with a warning.
 */
export function tlsOptionsOf(tls: KafkaTls, log: LifecycleLog): Pems {
  let used = pemsOf(tls, ({ pem }) => pem);
  const newest = (): Pems => {
    try {
      const pems = pemsOf(tls, ({ path }) => readFileSync(path, 'utf8'));
      createSecureContext(pems);
      used = pems;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ reason }, 'kafka: new certificate files cannot be used; the former ones are');
    }
    return used;
  };
  return {
    get ca() {
      return newest().ca;
    },
    get cert() {
      return used.cert;
    },
    get key() {
      return used.key;
    },
  };
}

function pemsOf({ ca, cert, key }: KafkaTls, read: (file: PemFile) => string): Pems {
  return {
    ...(ca !== null && { ca: read(ca) }),
    ...(cert !== null && { cert: read(cert) }),
    ...(key !== null && { key: read(key) }),
  };
}
