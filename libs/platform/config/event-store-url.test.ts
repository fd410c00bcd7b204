import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { parseConfig } from './config.ts';
import { parseEventStoreUrl } from './event-store-url.ts';

const folder = mkdtempSync(join(tmpdir(), 'parley-test-event-store-url-'));
afterAll(() => rmSync(folder, { recursive: true }));

const der = join(folder, 'ca.der');
writeFileSync(der, Uint8Array.from([0x30, 0x82, 1, 2]));
const pem = join(folder, 'ca.pem');
writeFileSync(pem, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');

describe('the address of an event store', () => {
  it.each([
    ['esdb://h:2113?tls=false', 'esdb://h:2113?tls=false', null, false],
    ['esdb://h', 'esdb://h', null, true],
    ['esdb://h/', 'esdb://h', null, true],
    ['esdb://h:1/?tls=true', 'esdb://h:1?tls=true', null, true],
    ['esdb+discover://a:1,b:2,c', 'esdb+discover://a:1,b:2,c', null, true],
    ['kurrentdb://h:2113?tls=false', 'esdb://h:2113?tls=false', null, false],
    ['kurrentdb+discover://a,b?tls=true', 'esdb+discover://a,b?tls=true', null, true],
    ['KURRENTDB://h', 'esdb://h', null, true],
    ['kdb://h?tlsVerifyCert=true', 'esdb://h?tls=true', null, true],
    ['esdb://u:p@h', 'esdb://h', ['u', 'p'], true],
    ['esdb://u:p@ss@h?tls=false', 'esdb://h?tls=false', ['u', 'p@ss'], false],
    ['esdb://u:p%40s%25s@h', 'esdb://h', ['u', 'p@s%s'], true],
    ['esdb://a%40b:p:q@h', 'esdb://h', ['a@b', 'p:q'], true],
    [`esdb://h?tlsCAFile=${pem}`, `esdb://h?tlsCAFile=${pem}`, null, true],
    [
      'esdb://h?NodePreference=leader&keepAliveInterval=10000',
      'esdb://h?NodePreference=leader&keepAliveInterval=10000',
      null,
      true,
    ],
  ])('%s is understood', (text, url, credentials, tls) => {
    const [username = '', password = ''] = credentials ?? [];
    expect(parseEventStoreUrl(text)).toMatchObject({ url, credentials: credentials && { username, password }, tls });
  });

  it('names its hosts, and the files of TLS', () => {
    const text = `esdb://u:p@a.example,10.0.0.1:1,[::1]:2?tlsCAFile=${encodeURIComponent(pem)}`;
    expect(parseEventStoreUrl(text)).toMatchObject({
      hosts: [
        { host: 'a.example', port: 2113 },
        { host: '10.0.0.1', port: 1 },
        { host: '::1', port: 2 },
      ],
      files: { tlscafile: pem },
    });
  });

  it.each([
    ['esdb://admin:S3CRET@h?tls=false&foo=1', /unknown option foo/],
    ['esdb://admin:S3CRET@h?foo=S3CRET', /unknown option foo/],
    ['esdb://admin:S3CRET%@h', /%25/],
    ['esdb://admin:S3CRET/x@h', /%2F/],
    ['esdb://admin:S3CRET?x=S3CRET@h', /%3F|@ among|port number/],
    ['esdb://admin:S3CRET', /port number/],
    ['esdb://S3CRET@h', /name:password@/],
    ['esdb://admin:@h', /name:password@/],
    ['esdb://admin:S3CRET@h:port', /port number/],
    ['esdb://admin:S3CRET@h:99999', /port number/],
    ['esdb://admin:S3CRET@ho st$', /port number/],
    ['esdb://admin:S3CRET@', /port number/],
    ['esdb://admin:S3CRET@h?tls=maybe', /true or false/],
    ['esdb://admin:S3CRET@h?tls', /name=value/],
    ['esdb://admin:S3CRET@h?tls=false?x=1', /true or false/],
    ['esdb://admin:S3CRET@h?tlsVerifyCert=false', /tlsCAFile/],
    ['esdb://admin:S3CRET@h?keepAliveInterval=soon', /whole number/],
    ['esdb://admin:S3CRET@h?nodePreference=S3CRET', /leader, follower/],
    ['http://admin:S3CRET@h', /esdb:\/\/host/],
    ['admin:S3CRET@h', /esdb:\/\/host/],
    [`esdb://admin:S3CRET@h?tlsCAFile=${der}`, /tlsCAFile that is no PEM file with a CERTIFICATE: .*ca\.der/],
    ['esdb://admin:S3CRET@h?tlsCAFile=/no/such/file', /tlsCAFile that cannot be read: .*\/no\/such\/file/],
  ])('%s is refused with the name of the variable, and without the password', (text, reason) => {
    const parse = () => parseConfig({ EVENTSTORE_URL: text });
    expect(parse).toThrow(/EVENTSTORE_URL/);
    expect(parse).toThrow(reason);
    expect(parse).not.toThrow(/S3CRET/);
  });
});
