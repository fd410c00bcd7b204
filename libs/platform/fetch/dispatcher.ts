import { isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { LRUCache } from 'lru-cache';
import { Agent, buildConnector } from 'undici';
import { codeOf } from '#libs/kernel/faults.ts';
import type { AllowedHost } from '#libs/platform/config/index.ts';
import { TransferError } from './fetch-error.ts';
import type { Resolve, ResolvedAddress } from './resolver.ts';
import { isAllowedHost, isPublicAddress } from './target.ts';

const MAX_HEADER_BYTES = 32 * 1024;
const CONNECTIONS_PER_ORIGIN = 8;
/** With open connections. Idle ones close after `KEEP_ALIVE_MS`. */
const MAX_ORIGINS = 250;
/** With connections that were used last. */
const MAX_GROUPS = 1_000;
const KEEP_ALIVE_MS = 4_000;

/** The connections of each group. */
export class GroupedDispatchers {
  readonly #rules: ConnectionRules;
  readonly #connectionsPerOrigin: number | undefined;
  readonly #all = new Set<Agent>();
  readonly #agents = new LRUCache<string, Agent>({
    max: MAX_GROUPS,
    // Waits for the requests under way.
    dispose: (agent) => void agent.close().finally(() => this.#all.delete(agent)),
  });

  constructor(rules: ConnectionRules, connectionsPerOrigin?: number) {
    this.#rules = rules;
    this.#connectionsPerOrigin = connectionsPerOrigin;
  }

  of(group: string): Agent {
    const known = this.#agents.get(group);
    if (known !== undefined) return known;
    const agent = guardedDispatcher(this.#rules, this.#connectionsPerOrigin);
    this.#all.add(agent);
    this.#agents.set(group, agent);
    return agent;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((agent) => agent.destroy()));
  }
}

/** Connections to addresses that come from outside. @param connectionsPerOrigin to one scheme, host and port */
function guardedDispatcher(rules: ConnectionRules, connectionsPerOrigin = CONNECTIONS_PER_ORIGIN): Agent {
  return new Agent({
    connect: guardedConnector(rules),
    connections: connectionsPerOrigin,
    maxOrigins: MAX_ORIGINS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of the fetch holds instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** For the resolution of the name, the TCP connection and the TLS handshake together. */
const CONNECT_TIMEOUT_MS = 10_000;
/** For one address, if the name has another one. */
const ATTEMPT_TIMEOUT_MS = 1_000;
/** Of one name. */
const MAX_ADDRESSES_TRIED = 16;

interface ConnectionRules {
  readonly allowHosts: readonly AllowedHost[];
  readonly resolve: Resolve;
}

/**
 * Opens connections to checked addresses only. A name is resolved once, here, for the connection that follows: no later
 * answer of a name server has an effect on it. Each pool of connections belongs to one scheme, host and port.
 */
function guardedConnector({ allowHosts, resolve }: ConnectionRules): buildConnector.connector {
  return (options, callback) => {
    const { hostname, protocol } = options;
    const host = hostname.replace(/\.$/, '');
    const port = Number(options.port || (protocol === 'https:' ? 443 : 80));
    const isAllowed = isAllowedHost(allowHosts, host, port);
    // Node connects to literals without a lookup.
    if (isIP(host) !== 0 && !isAllowed && !isPublicAddress(host)) {
      callback(new TransferError('address_refused', `${host} is not a public address`), null);
      return;
    }
    const connect = buildConnector({
      allowH2: false,
      timeout: CONNECT_TIMEOUT_MS,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
      maxCachedSessions: 0,
      lookup: lookupOf(async () => {
        const found = await resolve(host, AbortSignal.timeout(CONNECT_TIMEOUT_MS));
        const usable = isAllowed ? found : found.filter(({ address }) => isPublicAddress(address));
        if (usable.length > 0) return usable.slice(0, MAX_ADDRESSES_TRIED);
        if (found.length === 0) throw new TransferError('name_not_found', 'the name of the host has no address');
        throw new TransferError('address_refused', 'the host has no public address');
      }),
    });
    connect(options, (...result) => {
      if (result[0] === null) callback(null, result[1]);
      else callback(connectErrorOf(result[0], protocol), null);
    });
  };
}

/** In the form that `net.connect` calls; it tries the addresses in their order, the families in turn. */
function lookupOf(addresses: () => Promise<readonly ResolvedAddress[]>): LookupFunction {
  return (_hostname, { all }, callback) => {
    callbackify(addresses)((error, found) => {
      if (error !== null) callback(error, '');
      else if (all === true) callback(null, [...found]);
      else callback(null, found[0]?.address ?? '', found[0]?.family);
    });
  };
}

function connectErrorOf(error: Error, protocol: string): Error {
  if (error instanceof TransferError) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    return new TransferError('timeout', 'the server did not accept a connection in time', error);
  }
  const isBeforeTls = error instanceof AggregateError || ('syscall' in error && error.syscall === 'connect');
  return protocol === 'https:' && !isBeforeTls
    ? new TransferError('tls_failed', `the server has no valid certificate or does not support TLS (${code})`, error)
    : new TransferError('connect_failed', `no connection to the server (${code})`, error);
}
