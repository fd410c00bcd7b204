import { z } from 'zod';

/** A host that may be fetched although its address is private. */
export interface AllowedHost {
  /** As `URL` normalizes it: lower case, addresses in their usual form; IPv6 without brackets. */
  readonly host: string;
  /** Null: 80 and 443. */
  readonly port: number | null;
}

/** Parses `host` or `host:port`; an IPv6 address is in brackets. @returns null for anything else */
export function parseAllowedHost(text: string): AllowedHost | null {
  const [, name, port] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const url = name === undefined ? null : URL.parse(`http://${name}`);
  if (url === null || (port !== undefined && (Number(port) < 1 || Number(port) > 65_535))) return null;
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '');
  return { host, port: port === undefined ? null : Number(port) };
}

/** The host and port of a URL that the operator configured, and no other port of that host. */
export function allowedHostOf(url: string): AllowedHost {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  return { host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}

/** Schema of one item of a variable. */
export function allowedHost() {
  return z.string().transform((text, context) => {
    const host = parseAllowedHost(text);
    if (host !== null) return host;
    context.addIssue(`must hold hosts like wiki.internal or wiki.internal:8080; ${JSON.stringify(text)} is none`);
    return z.NEVER;
  });
}
