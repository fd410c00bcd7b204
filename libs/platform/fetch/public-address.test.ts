import { expect, it } from 'vitest';

import { isPublicAddress } from './target.ts';

it.each(['1.1.1.1', '93.184.216.34', '172.15.255.255', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001:80b::200e'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

it.each([
  ['unspecified', '0.0.0.0'],
  ['of this network', '0.1.2.3'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['private', '10.1.2.3'],
  ['private', '172.16.0.1'],
  ['private', '192.168.1.1'],
  ['shared by carriers', '100.64.0.1'],
  ['link-local, metadata of clouds', '169.254.169.254'],
  ['of protocols', '192.0.0.8'],
  ['for documentation', '192.0.2.1'],
  ['for documentation', '198.51.100.1'],
  ['for documentation', '203.0.113.1'],
  ['for benchmarks', '198.18.0.1'],
  ['of 6to4 relays', '192.88.99.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['IPv4-compatible', '::7f00:1'],
  ['IPv4-compatible', '::8.8.8.8'],
  ['IPv4-mapped', '::ffff:127.0.0.1'],
  ['IPv4-mapped', '::ffff:7f00:1'],
  ['IPv4-mapped of a public address', '::ffff:8.8.8.8'],
  ['IPv4-translated', '::ffff:0:7f00:1'],
  ['NAT64', '64:ff9b::7f00:1'],
  ['NAT64 of a public address', '64:ff9b::808:808'],
  ['local NAT64', '64:ff9b:1::7f00:1'],
  ['6to4', '2002:7f00:1::'],
  ['Teredo', '2001::1'],
  ['for documentation', '2001:db8::1'],
  ['for documentation', '3fff::1'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%lo'],
  ['site-local', 'fec0::1'],
  ['unique local', 'fd00::2'],
  ['multicast', 'ff02::1'],
  ['discarded', '100::1'],
  ['segment routing', '5f00::1'],
  ['not allocated', '4000::1'],
  ['not an address', 'localhost'],
  ['empty', ''],
])('an address that is %s is not public: %s', (_, address) => {
  expect(isPublicAddress(address)).toBe(false);
});
