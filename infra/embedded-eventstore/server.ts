// Starts the server in the current thread: data folder, log, services, port.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer as createProbe } from 'node:net';
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { codeOf, messageOf } from '#libs/kernel/faults.ts';
import { CannotStartError, DATA_FILE, damagedLog, lockDataFolder } from './data-folder.ts';
import { credentialsOf, type Credentials } from './credentials.ts';
import { authenticated } from './grpc/authentication.ts';
import { gossipService, serverFeaturesService, unsupportedServices } from './grpc/cluster-services.ts';
import type { GrpcService } from './grpc/service.ts';
import { streamsService } from './grpc/streams-service.ts';
import { damageOf } from './log/damage.ts';
import { serveLocal, type Served } from './local/serve.ts';
import type { EventLog } from './log/event-log.ts';
import { openEventLog } from './log/event-log.lmdb.ts';
import { Groups } from './persistent-subscriptions/groups.ts';
import { persistentSubscriptionsService } from './persistent-subscriptions/index.ts';

export type EventStoreOptions = {
  /** Folder for this event store only; created if it is missing. */
  dataDir: string;
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Serves calls without credentials, too. Default: requires the credentials in the folder. */
  insecure?: boolean;
  /** Pings a silent client after this time, and drops it if it does not respond within the same time. Default 10,000. */
  keepAliveMs?: number;
  /** Bytes of events in flight to one consumer of a group, beside its own limit of messages. Default: 64 MiB. */
  maxInFlightBytes?: number;
};

export type EventStoreServer = {
  port: number;
  /** `esdb://name:password@…?tls=false`; the official client ignores these credentials, see the README. */
  url: string;
  /** For a `LocalLog` of this process. */
  localPort: MessagePort;
  /** Ends open streams with CANCELLED, finishes accepted writes, releases port and folder. Idempotent. */
  stop(): Promise<void>;
};

/** The server refuses larger messages before it reads them; an append has at most 1 MiB, the client's chunks 3 MiB. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** As on a real server. Without it, a paused consumer would keep its messages in flight. */
const KEEP_ALIVE_MS = 10_000;
/** A consumer that is slower than its source would hold thousands of events in memory, here and in its own process. */
const MAX_IN_FLIGHT_BYTES = 64 * 1024 * 1024;
/** Time for calls under way when the server stops. */
const STOP_GRACE_MS = 2000;

/**
 * Starts an event store in the current thread.
 * @throws CannotStartError (rejects) when the folder or the port is not available
 */
export async function startEmbeddedEventStore(options: EventStoreOptions): Promise<EventStoreServer> {
  const { dataDir, host = '127.0.0.1', port = 0, insecure = false, keepAliveMs = KEEP_ALIVE_MS } = options;
  const { maxInFlightBytes = MAX_IN_FLIGHT_BYTES } = options;
  const unlock = lockDataFolder(dataDir);
  let log: EventLog | undefined;
  try {
    log = openLog(dataDir);
    const credentials = insecure ? undefined : credentialsOf(dataDir);
    // The folder itself may be readable for others.
    if (credentials) chmodSync(join(dataDir, DATA_FILE), 0o600);
    const groups = new Groups(log);
    const services = servicesOf({ log, groups, maxInFlightBytes }, credentials);
    const server = createServer(services, keepAliveMs);
    const bound = await bind(server, host, port);
    const { port1: localPort, port2: served } = new MessageChannel();
    const stopLocal = serveLocal({ log, groups, maxInFlightBytes }, served);
    const stop = async (): Promise<void> => {
      for (const service of services) await service.stop?.();
      await groups.stop();
      await shutDown(server);
      await log?.close();
      stopLocal();
      unlock();
    };
    let stopped: Promise<void> | undefined;
    const url = urlOf(host, bound, credentials);
    return { port: bound, url, localPort, stop: () => (stopped ??= stop()) };
  } catch (error) {
    await log?.close();
    unlock();
    throw error;
  }
}

function urlOf(host: string, port: number, credentials: Credentials | undefined): string {
  const user = credentials ? `${[credentials.username, credentials.password].map(encodeURIComponent).join(':')}@` : '';
  return `esdb://${user}${authority(host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port)}?tls=false`;
}

function authority(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function openLog(dataDir: string): EventLog {
  const damage = damageOf(join(dataDir, DATA_FILE));
  if (damage !== undefined) throw damagedLog(dataDir, damage);
  try {
    return openEventLog(dataDir);
  } catch (error) {
    const message = messageOf(error);
    if (/^MDB_(CORRUPTED|PAGE_NOTFOUND|INVALID)/.test(message)) throw damagedLog(dataDir, `LMDB says ${message}`);
    throw new CannotStartError(`the data folder ${dataDir} cannot be opened: ${message}`);
  }
}

/** As on a real server, gossip and features require no credentials: clients send none for them. */
function servicesOf(served: Served, credentials: Credentials | undefined): GrpcService[] {
  const { log, maxInFlightBytes } = served;
  const guard = (service: GrpcService): GrpcService => (credentials ? authenticated(service, credentials) : service);
  const groups = persistentSubscriptionsService(served.groups, maxInFlightBytes);
  const working = [guard(streamsService(log)), guard(groups), gossipService()];
  return [...working, serverFeaturesService(working), ...unsupportedServices().map(guard)];
}

function createServer(services: readonly GrpcService[], keepAliveMs: number): Server {
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.keepalive_time_ms': keepAliveMs,
    'grpc.keepalive_timeout_ms': keepAliveMs,
  });
  for (const { definition, implementation } of services) server.addService(definition, implementation);
  return server;
}

async function bind(server: Server, host: string, port: number): Promise<number> {
  await probe(host, port);
  const address = authority(host, port);
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(new CannotStartError(`cannot listen on ${address}: ${error.message}`));
      else resolve(bound);
    });
  });
}

/** Detects a busy port, which the gRPC library would log by itself. */
async function probe(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const server = createProbe().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const isBusy = codeOf(error) === 'EADDRINUSE';
    throw new CannotStartError(isBusy ? `port ${port} on ${host} is in use` : `cannot listen: ${String(error)}`);
  }
  server.close();
  await once(server, 'close');
}

async function shutDown(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, STOP_GRACE_MS);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
