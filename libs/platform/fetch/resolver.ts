import { promises as dns } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { codeOf } from '#libs/kernel/faults.ts';

import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';

import { TransferError } from './fetch-error.ts';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * All addresses of a name, in the order to try them.
 *
 * @throws TransferError
 */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;

/**
 * The system's resolver: hosts file, search domains, name service switch. It occupies a thread of Node's pool until it
 * answers, which may take long for a name whose servers are down; two of the four threads remain for files.
 */
export function systemResolver(): Resolve {
  const lookups = new FairSemaphore({ permits: 2 });
  return (name, signal) =>
    resolveWith(() =>
      lookups.run(
        async () => {
          const found = await dns.lookup(name, { all: true, order: 'verbatim' });
          return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
        },
        { signal },
      ),
    );
}

/**
 * Asks these name servers only: names of the hosts file are unknown.
 *
 * @param servers `address` or `address:port`
 */
export function resolverOf(servers: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: 1_000, tries: 3 });
  resolver.setServers(servers);
  return (name) =>
    resolveWith(async () => {
      const [six, four] = await Promise.allSettled([resolver.resolve6(name), resolver.resolve4(name)]);
      if (six.status === 'rejected' && four.status === 'rejected') throw four.reason;
      return [
        ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 }) as const) : []),
        ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 }) as const) : []),
      ];
    });
}

async function resolveWith(lookup: () => Promise<readonly ResolvedAddress[]>): Promise<readonly ResolvedAddress[]> {
  try {
    return await lookup();
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ETIMEOUT' || (error instanceof Error && error.name === 'TimeoutError')) {
      throw new TransferError('timeout', 'the name servers of the host did not answer in time', error);
    }
    throw new TransferError('name_not_found', 'the name of the host has no address', error);
  }
}
