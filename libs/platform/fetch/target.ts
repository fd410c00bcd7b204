import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { admitText } from '#libs/kernel/text.ts';
import type { AllowedHost } from '#libs/platform/config/index.ts';
import { FetchError } from './fetch-error.ts';

const MAX_URL_LENGTH = 8_192;

/** Names of this machine in every resolver (RFC 6761). */
const LOCAL_NAME = /^(.+\.)?localhost$/;

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/**
 * Parses a URL and refuses what its text alone forbids. The parser normalizes hosts: `2130706433`, `0x7f.1` and `127.1`
 * are 127.0.0.1. Names are resolved and checked when the connection is opened.
 *
 * @param base of a relative URL
 * @returns the URL without its fragment
 * @throws FetchError
 */
export function parseTarget(text: string, allowHosts: readonly AllowedHost[], base?: URL): URL {
  const url = URL.parse(text, base?.href);
  const hasUserinfo = url !== null && (url.username !== '' || url.password !== '');
  if (hasUserinfo) url.username = url.password = '';
  const shown = url === null ? text : url.href;
  if (url === null || url.href.length > MAX_URL_LENGTH) {
    const why = url === null ? 'this is not a valid URL' : `the URL has more than ${MAX_URL_LENGTH} characters`;
    throw new FetchError('invalid_url', admitText(shown, MAX_URL_LENGTH), why);
  }
  const defaultPort = DEFAULT_PORTS[url.protocol];
  if (defaultPort === undefined) {
    throw new FetchError('scheme_refused', shown, `only http and https are fetched, not ${url.protocol.slice(0, -1)}`);
  }
  if (hasUserinfo) {
    throw new FetchError('userinfo_refused', url.href, 'URLs with a user name or password are not fetched');
  }
  url.hash = '';
  const host = hostOf(url);
  const port = url.port === '' ? defaultPort : Number(url.port);
  const isAllowed = isAllowedHost(allowHosts, host, port);
  if (!isAllowed && port !== 80 && port !== 443) {
    throw new FetchError('port_refused', url.href, `port ${port} is not fetched, only 80 and 443`);
  }
  if (!isAllowed && (LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host)))) {
    throw new FetchError('address_refused', url.href, `${host} is not a public address`);
  }
  return url;
}

/** Whether `FETCH_ALLOW_HOSTS` names the host and the port; a host without a port has 80 and 443. */
export function isAllowedHost(allowHosts: readonly AllowedHost[], host: string, port: number): boolean {
  return allowHosts.some(
    (allowed) => allowed.host === host && (allowed.port === null ? port === 80 || port === 443 : allowed.port === port),
  );
}

/** Parses a URL whose protocol is http or https. */
export function isAllowedUrl(allowHosts: readonly AllowedHost[], url: URL): boolean {
  return isAllowedHost(
    allowHosts,
    hostOf(url),
    url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? 0) : Number(url.port),
  );
}

/** The host as `isIP` and `AllowedHost` write it: an IPv6 address without brackets, a name without a final dot. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$|\.$/g, '');
}

/** Of IPv6, IANA has only allocated 2000::/3 for addresses of single hosts on the Internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an address is one of a host on the Internet: not of this machine, of a private or local network, reserved, or
 * one that contains an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed instanceof ipaddr.IPv6 && !parsed.match(GLOBAL_UNICAST)) return false;
  return parsed.range() === 'unicast';
}
