/**
 * Schemas of the values of environment variables. A message is the end of a sentence that starts with the variable's
 * name. It contains the value unless that may be secret.
 */
import { isIP } from 'node:net';
import { z } from 'zod';

/** A whole number in plain digits (`8080`; not `8e3`, not `0x10`). */
export function integer(min: number, max: number) {
  return z
    .string()
    .refine((value) => /^\d{1,15}$/.test(value) && Number(value) >= min && Number(value) <= max, {
      error: ({ input }) => `must be a whole number from ${min} to ${max}; it is ${JSON.stringify(input)}`,
    })
    .transform(Number);
}

/** A decimal number from 0 in plain digits (`2.5`), with at most nine digits on each side of the point. */
export function decimal() {
  return z
    .string()
    .refine((value) => /^\d{1,9}(\.\d{1,9})?$/.test(value), {
      error: ({ input }) => `must be a decimal number like 2.5; it is ${JSON.stringify(input)}`,
    })
    .transform(Number);
}

export function oneOf<const Options extends readonly [string, ...string[]]>(options: Options) {
  return z.enum(options, {
    error: ({ input }) => `must be one of ${options.join(', ')}; it is ${JSON.stringify(input)}`,
  });
}

/** `true` or `false` only. */
export function boolean() {
  return oneOf(['true', 'false']).transform((value) => value === 'true');
}

/** A URL with one of `protocols` (`redis:`). It may contain a password, so the message omits it. */
export function url(...protocols: readonly string[]) {
  const forms = protocols.map((protocol) => `${protocol}//…`).join(' or ');
  return z.string().refine((value) => hasProtocol(value, protocols), { error: () => `must be a URL like ${forms}` });
}

/** An http or https URL without a user, a query and a fragment, which paths can be appended to. */
export function webUrl() {
  return z.string().refine(
    (value) => {
      const parsed = URL.parse(value);
      return parsed !== null && /^https?:$/.test(parsed.protocol) && !/[?#@]/.test(value);
    },
    { error: () => 'must be a URL like https://api.example.com/v1, without a user, a query or a fragment' },
  );
}

/** As {@link webUrl}, with a path of plain segments, parsed to the form without a slash at the end. */
export function publicUrl() {
  return webUrl()
    .refine((value) => /^(\/[\w.~-]+)*\/?$/.test(URL.parse(value)?.pathname ?? ''), {
      error: () => 'must have a path of plain segments, such as https://example.com/parley',
    })
    .transform((value) => new URL(value).href.replace(/\/$/, ''));
}

/** A Redis, or nodes of a cluster, separated by commas. They may contain passwords, so the message omits them. */
export function redisUrls() {
  return z.string().refine((value) => areRedisUrls(value), {
    error: () =>
      'must be a URL like redis://host:6379/0 or rediss://…, without options, or several of one kind, separated by commas',
  });
}

/** A web origin: scheme, host and port only. */
export function origin() {
  return z
    .string()
    .refine((value) => /^https?:\/\//.test(value) && URL.canParse(value) && new URL(value).origin === value, {
      error: ({ input }) => `must hold origins like https://app.example.com; ${JSON.stringify(input)} is none`,
    });
}

/** Items separated by commas, without surrounding blanks and empty items. */
export function listOf<Item extends z.ZodType<unknown, string>>(item: Item) {
  return z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .pipe(z.array(item));
}

/** Host and port of a server; an IPv6 address is in brackets. */
export function address() {
  return z.string().refine((value) => isAddress(value), {
    error: ({ input }) => `must hold addresses like broker-1:9092; ${JSON.stringify(input)} is none`,
  });
}

function hasProtocol(value: string, protocols: readonly string[]): boolean {
  // Cluster addresses of EventStoreDB contain several hosts, which `URL` refuses: this checks the scheme only.
  const scheme = /^([a-z+]+:)\/\/[^\s]+$/.exec(value)?.[1];
  return scheme !== undefined && protocols.includes(scheme);
}

function areRedisUrls(value: string): boolean {
  const urls = value.split(',').map((part) => part.trim());
  // Options in a query would be taken for options of the client, and others be ignored.
  const areAddresses = urls.every((url) => !/[?#]/.test(url) && /^\/?\d*$/.test(URL.parse(url)?.pathname ?? ''));
  if (!areAddresses) return false;
  // The path is the number of a database, and a cluster only has database 0.
  const canBeNodes = urls.every((url) => URL.canParse(url) && /^\/?0?$/.test(new URL(url).pathname));
  return (
    urls.every((url) => hasProtocol(url, ['redis:', 'rediss:'])) &&
    (urls.length === 1 || (canBeNodes && new Set(urls.map((url) => new URL(url).protocol)).size === 1))
  );
}

function isAddress(value: string): boolean {
  const [, host, port] = /^([\w.-]+|\[[\da-f:.]+\]):(\d{1,5})$/i.exec(value) ?? [];
  return host !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
}

/** An IP address or a network (`10.0.0.0/8`). */
export function network() {
  return z.string().refine(
    (value) => {
      const [address = '', bits, ...more] = value.split('/');
      const version = isIP(address);
      if (version === 0 || more.length > 0) return false;
      return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
    },
    { error: ({ input }) => `must hold addresses or networks like 10.0.0.0/8; ${JSON.stringify(input)} is none` },
  );
}

/** Variables that are set together or not at all. @param given variables that are set */
export function incompleteSet(given: Readonly<Record<string, string>>, names: readonly string[]): string[] {
  const there = names.filter((name) => given[name] !== undefined);
  const missing = names.filter((name) => given[name] === undefined);
  if (there.length === 0 || missing.length === 0) return [];
  return [`${there.join(', ')} ${there.length === 1 ? 'needs' : 'need'} ${missing.join(' and ')} as well`];
}

/** The URL of an endpoint needs a model; the others, the model among them, need the URL. @param given variables that are set */
export function endpointProblems(
  given: Readonly<Record<string, string>>,
  { url, model, others }: { readonly url: string; readonly model: string; readonly others: readonly string[] },
): string[] {
  const isSet = (name: string): boolean => given[name] !== undefined;
  if (isSet(url)) return isSet(model) ? [] : [`${url} needs ${model} as well`];
  const alone = others.filter(isSet);
  return alone.length === 0 ? [] : [`${alone.join(', ')} ${alone.length === 1 ? 'needs' : 'need'} ${url} as well`];
}

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
