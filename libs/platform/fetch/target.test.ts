import { describe, expect, it } from 'vitest';

import { parseAllowedHost } from '#libs/platform/config/index.ts';

import { FetchError } from './fetch-error.ts';
import { parseTarget } from './target.ts';

const allowHosts = ['wiki.internal', 'wiki.internal:8080', '10.0.0.7:9000', '[fd00::2]'].map((text) => {
  const host = parseAllowedHost(text);
  if (host === null) throw new TypeError(text);
  return host;
});

function resultOf(text: string): URL | FetchError {
  try {
    return parseTarget(text, allowHosts);
  } catch (error) {
    if (error instanceof FetchError) return error;
    throw error;
  }
}

function reasonOf(text: string): string {
  const result = resultOf(text);
  return result instanceof URL ? result.href : result.reason;
}

describe('URLs that are fetched', () => {
  it.each([
    ['http://example.com', 'http://example.com/'],
    ['HTTPS://EXAMPLE.com:443/a b?c#d', 'https://example.com/a%20b?c'],
    ['http://example.com:443/', 'http://example.com:443/'],
    ['https://例え.jp/', 'https://xn--r8jz45g.jp/'],
    ['http://1.1.1.1/', 'http://1.1.1.1/'],
    ['http://[2606:4700::1111]/', 'http://[2606:4700::1111]/'],
    ['http://wiki.internal/', 'http://wiki.internal/'],
    ['http://WIKI.internal.:8080/', 'http://wiki.internal.:8080/'],
    ['http://10.0.0.7:9000/', 'http://10.0.0.7:9000/'],
    ['https://[fd00::0:2]/', 'https://[fd00::2]/'],
  ])('%s', (text, href) => {
    expect(reasonOf(text)).toBe(href);
  });
});

describe('URLs that are refused', () => {
  it.each([
    ['invalid_url', ['', 'example.com', 'http://', 'http://[::1', 'http://a b/', 'http://1.2.3.4.5/', '/page']],
    ['invalid_url', [`http://example.com/${'a'.repeat(9_000)}`]],
    [
      'scheme_refused',
      ['file:///etc/passwd', 'ftp://example.com/', 'data:,x', 'javascript:1', 'gopher://a:80/', 'ws://a/'],
    ],
    ['userinfo_refused', ['http://me@example.com/', 'http://me:secret@example.com/', 'http://example.com@127.0.0.1/']],
    ['port_refused', ['http://example.com:22/', 'http://example.com:8080/', 'http://10.0.0.7:9001/', 'http://a:0/']],
    ['address_refused', ['http://127.1/', 'http://2130706433/', 'http://0x7f.1/', 'http://0177.0.0.1/', 'http://0/']],
    ['address_refused', ['http://[::ffff:7f00:1]/', 'http://[::ffff:127.0.0.1]/', 'http://[64:ff9b::7f00:1]/']],
    ['address_refused', ['http://169.254.169.254/latest/', 'https://127.0.0.1./', 'http://[::1]/', 'http://[::]:443/']],
    ['address_refused', ['http://localhost/', 'https://LOCALHOST./', 'http://api.localhost/']],
    ['address_refused', ['http://%31%32%37.0.0.1/', 'http://①②⑦.0.0.1/', 'http://127。0。0。1/', 'http://10.0.0.7/']],
  ])('%s: %s', (reason, texts) => {
    expect(texts.map(reasonOf)).toEqual(texts.map(() => reason));
  });

  it('the error of a URL with a password does not contain it', () => {
    const error = resultOf('http://me:secret@example.com/');
    expect(error).toMatchObject({ reason: 'userinfo_refused', url: 'http://example.com/' });
    expect(resultOf('ftp://me:secret@example.com/')).toMatchObject({ url: 'ftp://example.com/' });
  });
});
