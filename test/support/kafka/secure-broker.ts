/** A Kafka broker that requires TLS and authenticates its clients by a password or by a certificate. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { onFreePort } from '../on-free-port.ts';
import { formatStorage, startBrokerProcess } from './broker-process.ts';
import { makeCertificateAuthority } from './certificates.ts';
import { brokerClasses } from './java.ts';
import { addScramUser } from './scram-user.ts';

export interface SecureTestKafka {
  /** `host:port` of the plaintext listener without authentication, through which a test inspects the broker. */
  readonly inClear: string;
  /** TLS and a password, by any of the mechanisms. */
  readonly withPassword: string;
  /** TLS and a client certificate. */
  readonly withCertificate: string;
  readonly username: string;
  readonly password: string;
  /** PEM files. */
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
  /** Texts of a client certificate and its key that the broker does not trust. */
  readonly untrusted: { readonly cert: string; readonly key: string };
  stop(): Promise<void>;
}

const USERNAME = 'parley';
const PASSWORD = 'a password of this test only';

/** Always a new broker. */
export async function startSecureTestKafka(): Promise<SecureTestKafka> {
  const classes = await brokerClasses();
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-kafka-secure-'));
  const dataDir = join(folder, 'data');
  await mkdir(dataDir);
  await formatStorage(dataDir);
  const { files, tls } = await writeCertificates(folder);
  const { port, passwordPort, certificatePort, broker } = await onFreePort(async (free) => {
    const [controllerPort, forPassword, forCertificate] = [await freePort(), await freePort(), await freePort()];
    const started = await startBrokerProcess({
      dataDir,
      classes,
      port: free,
      controllerPort,
      settings: AUTHORIZER,
      listeners: [
        { protocol: 'SASL_SSL', port: forPassword, settings: { ...tls, ...PASSWORD_SETTINGS } },
        { protocol: 'SSL', port: forCertificate, settings: { ...tls, 'ssl.client.auth': 'required' } },
      ],
    });
    return { port: free, passwordPort: forPassword, certificatePort: forCertificate, broker: started };
  });
  const stop = async (): Promise<void> => {
    broker.kill('SIGKILL');
    await broker.exited;
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await addScramUser(port, USERNAME, PASSWORD);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    inClear: `127.0.0.1:${port}`,
    withPassword: `127.0.0.1:${passwordPort}`,
    withCertificate: `127.0.0.1:${certificatePort}`,
    username: USERNAME,
    password: PASSWORD,
    files,
    untrusted: makeCertificateAuthority('another').issue('parley'),
    stop,
  };
}

async function writeCertificates(folder: string) {
  const authority = makeCertificateAuthority('a test of Parley');
  const [broker, client] = [authority.issue('broker'), authority.issue('parley')];
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, text);
    return path;
  };
  const files = {
    ca: await write('ca.pem', authority.cert),
    cert: await write('client.pem', client.cert),
    key: await write('client.key', client.key),
  };
  const tls = {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': await write('broker.pem', `${broker.key}${broker.cert}`),
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': files.ca,
  };
  return { files, tls };
}

/** Rights are checked where a test has made a rule; the plaintext listener may do everything. */
const AUTHORIZER = {
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'allow.everyone.if.no.acl.found': 'true',
  'super.users': 'User:ANONYMOUS',
};

const MODULES = 'org.apache.kafka.common.security';
const SCRAM = `${MODULES}.scram.ScramLoginModule required;`;

const PASSWORD_SETTINGS = {
  'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
  'plain.sasl.jaas.config': `${MODULES}.plain.PlainLoginModule required user_${USERNAME}="${PASSWORD}";`,
  'scram-sha-256.sasl.jaas.config': SCRAM,
  'scram-sha-512.sasl.jaas.config': SCRAM,
};
