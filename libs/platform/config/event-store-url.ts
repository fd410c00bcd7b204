/*
 * Addresses of event stores. The official client quotes the address in errors and in warnings on the console, password
 * included; so everything that it would complain about is refused here, in words that quote no part of the address except
 * for names of options, values of plain options, and paths of files.
 */
import { readFileSync } from 'node:fs';

import { z } from 'zod';
import { messageOf } from '#libs/kernel/faults.ts';

export interface EventStoreUrl {
  /** Without credentials, in the form that the official client of EventStoreDB accepts. */
  readonly url: string;
  readonly credentials: { readonly username: string; readonly password: string } | null;
  readonly tls: boolean;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Paths of PEM files. */
  readonly files: Readonly<Partial<Record<keyof typeof files, string>>>;
}

/** KurrentDB is the new name of EventStoreDB. */
const FORM = /^(?:esdb|kurrentdb|kurrent|kdb)(\+discover)?:\/\/([^/?]*)(?:\/?\?(.*)|\/?)$/i;
const HOST = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;
const DEFAULT_PORT = '2113';
const EXPECTED = 'must look like esdb://host:2113?tls=false';

const files = { tlscafile: 'CERTIFICATE', usercertfile: 'CERTIFICATE', userkeyfile: 'PRIVATE KEY' } as const;
const flags = new Set(['tls', 'throwonappendfailure']);
const numbers = new Set([
  'maxdiscoverattempts',
  'defaultdeadline',
  'discoveryinterval',
  'gossiptimeout',
  'keepaliveinterval',
  'keepalivetimeout',
]);

/** @throws TypeError whose message is the end of a sentence about the address, and quotes no secret */
export function parseEventStoreUrl(text: string): EventStoreUrl {
  const [form, discover = '', authority = '', query = ''] = FORM.exec(text.trim()) ?? [];
  if (form === undefined) throw new TypeError(`${EXPECTED}; write / and ? in a user name or password as %2F and %3F`);
  // Passwords may contain an @; hosts do not.
  const at = authority.lastIndexOf('@');
  const credentials = at < 0 ? null : credentialsOf(authority.slice(0, at));
  const hosts = authority.slice(at + 1);
  const isHost = (host: string): boolean => {
    const [known, , port = DEFAULT_PORT] = HOST.exec(host.trim()) ?? [];
    return known !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
  };
  if (!hosts.split(',').every(isHost)) {
    throw new TypeError(`${EXPECTED}: after the last @ come hosts, each with a port number from 1 to 65535 or none`);
  }
  if (query.includes('@')) throw new TypeError('has an @ among its options; write it as %40');
  const options = query === '' ? [] : query.split('&').map(optionOf);
  const tls = !options.some(([name, value]) => name.toLowerCase() === 'tls' && value === 'false');
  const given = options.map(([name, value]) => `${name}=${value}`).join('&');
  return {
    url: `esdb${discover.toLowerCase()}://${hosts}${given === '' ? '' : `?${given}`}`,
    credentials,
    tls,
    hosts: hosts.split(',').map((text) => {
      const [, host = '', port = DEFAULT_PORT] = HOST.exec(text.trim()) ?? [];
      return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
    }),
    files: Object.fromEntries(
      options.flatMap(([name, value]) => {
        const key = keyOf(name);
        return Object.hasOwn(files, key) ? [[key, decodeURIComponent(value)]] : [];
      }),
    ),
  };
}

function keyOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}

function credentialsOf(text: string): EventStoreUrl['credentials'] {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1)
    throw new TypeError('must name user and password before the @, as name:password@');
  try {
    return { username: decodeURIComponent(text.slice(0, colon)), password: decodeURIComponent(text.slice(colon + 1)) };
  } catch {
    throw new TypeError('has a % in its user name or password that begins no escape; write it as %25');
  }
}

function optionOf(text: string): readonly [name: string, value: string] {
  const equals = text.indexOf('=');
  const [name, value] = [text.slice(0, equals), text.slice(equals + 1)];
  if (equals < 1 || value === '' || !/^\w{1,40}$/.test(name))
    throw new TypeError('has an option that is not name=value');
  const key = keyOf(name);
  if (key === 'tlsverifycert') {
    if (value === 'true') return ['tls', 'true'];
    throw new TypeError('has the option tlsVerifyCert=false, which Parley does not support: name the CA in tlsCAFile');
  }
  if (flags.has(key) && !/^(true|false)$/.test(value))
    throw new TypeError(`has the option ${name}, which is true or false`);
  if (numbers.has(key) && !/^\d{1,9}$/.test(value))
    throw new TypeError(`has the option ${name}, which is a whole number`);
  if (key === 'nodepreference' && !/^(leader|follower|random|read_?only_?replica)$/i.test(value)) {
    throw new TypeError(`has the option ${name}, which is leader, follower, random or readOnlyReplica`);
  }
  if (Object.hasOwn(files, key)) requirePem(name, value, files[key as keyof typeof files]);
  else if (!flags.has(key) && !numbers.has(key) && key !== 'nodepreference' && key !== 'connectionname') {
    throw new TypeError(`has the unknown option ${name}`);
  }
  return [name, value];
}

function requirePem(name: string, value: string, holds: string): void {
  let path: string;
  try {
    path = decodeURIComponent(value);
  } catch {
    throw new TypeError(`has a % in ${name} that begins no escape; write it as %25`);
  }
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    throw new TypeError(`names a ${name} that cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (!pem.includes(`${holds}-----`)) {
    throw new TypeError(`names a ${name} that is no PEM file with a ${holds}: ${JSON.stringify(path)}`);
  }
}

/** The value of a variable: the address as it is given. */
export function eventStoreUrl() {
  return z.string().superRefine((value, context) => {
    try {
      parseEventStoreUrl(value);
    } catch (error) {
      context.addIssue(error instanceof TypeError ? error.message : String(error));
    }
  });
}
