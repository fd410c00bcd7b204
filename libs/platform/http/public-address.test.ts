import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { PublicAddress, type PublicAddressOptions } from './public-address.ts';

function request(headers: Record<string, string>, remoteAddress = '10.0.0.1') {
  const socket = { remoteAddress, localPort: 8080 };
  return { headers: { host: 'inner:8080', ...headers }, socket } as unknown as IncomingMessage;
}

const of = (options: PublicAddressOptions, headers: Record<string, string>, remoteAddress?: string) =>
  new PublicAddress(options).of(request(headers, remoteAddress));

const PROXY = { trustedProxies: ['10.0.0.0/8'] };

describe('the public address', () => {
  it('is the configured one, whatever the request says', () => {
    const publicUrl = 'https://example.com/parley';
    const forwarded = { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example', host: 'evil.example' };
    expect(of({ publicUrl, ...PROXY }, forwarded)).toBe(publicUrl);
  });

  it('is what a trusted proxy forwards', () => {
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'example.com:8443',
      'x-forwarded-prefix': '/a/b/',
    };
    expect(of(PROXY, forwarded)).toBe('https://example.com:8443/a/b');
    expect(of(PROXY, forwarded, '192.0.2.1')).toBe('http://inner:8080');
    expect(of({}, forwarded)).toBe('http://inner:8080');
    expect(of(PROXY, { 'x-forwarded-proto': 'http, https' })).toBe('https://inner:8080');
  });

  it.each([
    { 'x-forwarded-proto': 'javascript' },
    { 'x-forwarded-proto': 'https:' },
    { 'x-forwarded-proto': '' },
    { 'x-forwarded-proto': 'https, ' },
    { 'x-forwarded-host': 'example.com/path' },
    { 'x-forwarded-host': 'user@example.com' },
    { 'x-forwarded-host': 'a b' },
    { 'x-forwarded-host': '"><script>' },
    { 'x-forwarded-host': 'example.com:port' },
    { 'x-forwarded-prefix': '//example.com' },
    { 'x-forwarded-prefix': 'prefix' },
    { 'x-forwarded-prefix': '/a?b' },
  ])('ignores %o', (forwarded) => {
    expect(of(PROXY, forwarded)).toBe('http://inner:8080');
  });

  it('does not repeat a host that is none', () => {
    expect(of({}, { host: '"><script>' })).toBe('http://127.0.0.1:8080');
    expect(of({}, { host: '[::1]:8080' })).toBe('http://[::1]:8080');
    expect(of({}, { host: 'gateway_1' })).toBe('http://gateway_1');
  });

  it('is an origin of its own, in the forms that clients send', () => {
    const isOwn = (origin: string, host: string, options = {}) =>
      new PublicAddress(options).isOwn(origin, request({ host }));
    expect(isOwn('https://example.com', 'example.com')).toBe(true);
    // React Native on Android names the port of the URL, and once ended with a slash.
    expect(isOwn('https://example.com:443', 'example.com')).toBe(true);
    expect(isOwn('http://example.com:80/', 'example.com')).toBe(true);
    expect(isOwn('http://10.0.2.2:8080', '10.0.2.2:8080')).toBe(true);
    expect(isOwn('https://Example.com', 'example.COM:443')).toBe(true);
    expect(isOwn('https://example.com', 'inner', { publicUrl: 'https://example.com/parley' })).toBe(true);
    for (const origin of [
      'https://evil.com',
      'https://example.com:8443',
      'null',
      '',
      'file://',
      'https://example.com.evil.com',
    ]) {
      expect(isOwn(origin, 'example.com')).toBe(false);
    }
  });

  it('has a prefix that requests may or may not have', () => {
    const address = new PublicAddress({ publicUrl: 'https://example.com/parley' });
    const paths = ['/parley/api/v1', '/parley', '/parley?x', '/api/v1', '/parleys/api'];
    expect(paths.map((path) => address.withoutPrefix(path))).toEqual([
      '/api/v1',
      '/',
      '/?x',
      '/api/v1',
      '/parleys/api',
    ]);
  });
});
