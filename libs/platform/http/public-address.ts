import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

export interface PublicAddressOptions {
  /** `PUBLIC_URL`, without a slash at its end: scheme, host and path prefix of this server, for its clients. */
  readonly publicUrl?: string | undefined;
  /** Addresses or networks of proxies whose forwarded headers are used; none by default. */
  readonly trustedProxies?: readonly string[] | undefined;
}

type Head = Pick<IncomingMessage, 'headers' | 'socket'>;

/** A host name or an address, with an optional port. Names of containers may have underscores. */
const HOST = /^(?:[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
const PREFIX = /^(?:\/[A-Za-z0-9._~-]+)+$/;

/**
 * The address of this server as its clients see it: the configured one, else what a trusted proxy forwards, else what the
 * request itself says. Values that are not well-formed are ignored.
 */
export class PublicAddress {
  /** Null without a configured address. */
  readonly url: string | null;
  /** Path prefix of the configured address: `''`, or `/…`. */
  readonly prefix: string;
  readonly #isTrusted: (address: string, hop: number) => boolean;

  constructor({ publicUrl, trustedProxies = [] }: PublicAddressOptions) {
    this.url = publicUrl ?? null;
    this.prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
    this.#isTrusted = proxyAddr.compile([...trustedProxies]);
  }

  /** Scheme, host and path prefix, without a slash at the end. */
  of(request: Head): string {
    if (this.url !== null) return this.url;
    const { encrypted } = request.socket as { readonly encrypted?: boolean };
    const scheme = this.#forwarded(request, 'proto', /^https?$/) ?? (encrypted === true ? 'https' : 'http');
    return `${scheme}://${this.#hostOf(request)}${this.#prefixOf(request)}`;
  }

  /** For a reply that names a path of this server: the whole address if it is certain, else the path with its prefix. */
  pathOf(request: Head, path: string): string {
    return (this.url ?? this.#prefixOf(request)) + path;
  }

  /** Whether an `Origin` is this server itself. Its scheme is not compared: TLS may end at a proxy. */
  isOwn(origin: string, request: Head): boolean {
    const own = URL.parse(origin);
    if (own === null || !/^https?:$/.test(own.protocol)) return false;
    const hosts = [this.url === null ? '' : new URL(this.url).host, this.#hostOf(request)];
    // The port is left out where the scheme implies it.
    return hosts.some((host) => URL.parse(`${own.protocol}//${host}`)?.host === own.host);
  }

  /** The path of a request without the prefix, which some proxies pass on and others remove. */
  withoutPrefix(url: string): string {
    if (this.prefix === '' || !url.startsWith(this.prefix)) return url;
    const rest = url.slice(this.prefix.length);
    return rest === '' || rest.startsWith('?') ? `/${rest}` : rest.startsWith('/') ? rest : url;
  }

  #hostOf(request: Head): string {
    const { headers, socket } = request;
    const own = headers.host ?? '';
    return this.#forwarded(request, 'host', HOST) ?? (HOST.test(own) ? own : `127.0.0.1:${socket.localPort ?? 80}`);
  }

  #prefixOf(request: Head): string {
    return this.url === null ? (this.#forwarded(request, 'prefix', PREFIX) ?? '') : this.prefix;
  }

  /** The value that the nearest proxy has added, which is the last one. */
  #forwarded({ headers, socket }: Head, name: 'proto' | 'host' | 'prefix', form: RegExp): string | undefined {
    const header = headers[`x-forwarded-${name}`];
    if (header === undefined || !this.#isTrusted(socket.remoteAddress ?? '', 0)) return undefined;
    const value = header.toString().split(',').at(-1)?.trim().replace(/\/$/, '') ?? '';
    return form.test(value) ? value : undefined;
  }
}
