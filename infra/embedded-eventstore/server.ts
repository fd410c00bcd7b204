// The server in the current thread: data folder, log, services, port.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer as createProbe } from 'node:net';
import { join } from 'node:path';
import { CannotStartError, DATA_FILE, damagedLog, holdDataFolder } from './data-folder.ts';
import { credentialsOf } from './credentials.ts';
import type { Credentials } from './credentials.ts';
import { authenticated } from './grpc/authentication.ts';
import { gossipService, serverFeaturesService } from './grpc/cluster-services.ts';
import type { GrpcService } from './grpc/service.ts';
import { streamsService } from './grpc/streams-service.ts';
import { unsupportedServices } from './grpc/unsupported-services.ts';
import { damageOf } from './log/damage.ts';
import type { EventLog } from './log/event-log.ts';
import { openEventLog } from './log/event-log.lmdb.ts';
import { persistentSubscriptionsService } from './persistent-subscriptions/index.ts';

export type EventStoreOptions = {
  /** Folder of this event store alone; created where needed. */
  dataDir: string;
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Serves calls without credentials. Default: only those that carry the credentials in the folder. */
  insecure?: boolean;
  /** Pings a silent client after this time, and drops it if it does not answer within as much again. Default 10,000. */
  keepAliveMs?: number;
};

export type EventStoreServer = {
  port: number;
  /** `esdb://name:password@…?tls=false`; the official client sends such credentials only with help, see the README. */
  url: string;
  /** Ends open streams with CANCELLED, finishes accepted writes, frees port and folder. May be called twice. */
  stop(): Promise<void>;
};

/** Messages larger than this are refused before they are read; an append may be 1 MiB, the client's chunks 3 MiB. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** As on a real server. Otherwise a persistent subscription would keep what it holds while its process is paused. */
const KEEP_ALIVE_MS = 10_000;
/** How long a stopping server waits for calls under way. */
const STOP_GRACE_MS = 2000;

/**
 * Starts an event store in the current thread.
 * @throws CannotStartError (rejects) when the folder or the port cannot be had
 */
export async function startEmbeddedEventStore(options: EventStoreOptions): Promise<EventStoreServer> {
  const { dataDir, host = '127.0.0.1', port = 0, insecure = false, keepAliveMs = KEEP_ALIVE_MS } = options;
  const folder = holdDataFolder(dataDir);
  let log: EventLog | undefined;
  try {
    log = openLog(dataDir);
    const credentials = insecure ? undefined : credentialsOf(dataDir);
    // Otherwise others could read the events without asking the server: the folder need not be a private one.
    if (credentials) chmodSync(join(dataDir, DATA_FILE), 0o600);
    const services = servicesOf(log, credentials);
    const server = createServer(services, keepAliveMs);
    const bound = await bind(server, host, port);
    return running({ server, services, log, host, port: bound, credentials, release: () => folder.release() });
  } catch (error) {
    await log?.close();
    folder.release();
    throw error;
  }
}

function openLog(dataDir: string): EventLog {
  const damage = damageOf(join(dataDir, DATA_FILE));
  if (damage !== undefined) throw damagedLog(dataDir, damage);
  try {
    return openEventLog(dataDir);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CannotStartError(`the data folder ${dataDir} cannot be opened: ${reason}`);
  }
}

/** As on a real server, gossip and features need no credentials: clients ask for them without any. */
function servicesOf(log: EventLog, credentials: Credentials | undefined): GrpcService[] {
  const guard = (service: GrpcService): GrpcService => (credentials ? authenticated(service, credentials) : service);
  const working = [guard(streamsService(log)), guard(persistentSubscriptionsService(log)), gossipService()];
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
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(new CannotStartError(`cannot listen on ${address}: ${error.message}`));
      else resolve(bound);
    });
  });
}

/** A taken port is found out here, because the gRPC library would log it in words of its own. */
async function probe(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const server = createProbe().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const isBusy = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    throw new CannotStartError(isBusy ? `port ${port} on ${host} is in use` : `cannot listen: ${String(error)}`);
  }
  server.close();
  await once(server, 'close');
}

type Parts = {
  server: Server;
  services: readonly GrpcService[];
  log: EventLog;
  host: string;
  port: number;
  credentials: Credentials | undefined;
  release(): void;
};

function running({ server, services, log, host, port, credentials, release }: Parts): EventStoreServer {
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    for (const service of services) await service.stop?.();
    await shutDown(server);
    await log.close();
    release();
  };
  const user = credentials ? `${[credentials.username, credentials.password].map(encodeURIComponent).join(':')}@` : '';
  const shownHost = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return {
    port,
    url: `esdb://${user}${shownHost.includes(':') ? `[${shownHost}]` : shownHost}:${port}?tls=false`,
    stop: () => (stopped ??= stop()),
  };
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
