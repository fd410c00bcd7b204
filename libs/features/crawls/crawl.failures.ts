import type { CrawledPage } from './crawl.ts';

/** Sentences about a page, which follow its URL, by the reason of its outcome. */
const TEXTS: Readonly<Record<string, string>> = {
  not_found: 'does not exist (404 or 410)',
  invalid_url: 'leads to a URL that is not valid',
  scheme_refused: 'leads to a URL that is neither http nor https',
  userinfo_refused: 'leads to a URL with a user name or password, which is not fetched',
  port_refused: 'leads to a port that is not fetched, only 80 and 443 are',
  address_refused: 'leads to an address that is not public',
  name_not_found: 'is on a host whose name does not exist',
  connect_failed: 'is on a server that cannot be reached',
  tls_failed: 'is on a server that did not agree on a secure connection',
  timeout: 'did not arrive in time',
  too_slow: 'arrived at less than 512 bytes a second',
  too_large: 'is larger than 5 MiB',
  too_many_redirects: 'redirects more than 5 times',
  redirect_loop: 'redirects in a circle',
  disconnected: 'ended before it was complete',
  bad_response: 'was answered with what is not valid HTTP',
  decode_failed: 'does not decode as its Content-Encoding says',
  unreadable: 'cannot be read: it takes too much time or memory',
  unsupported_type: 'is neither a page nor text',
  no_text: 'holds no text',
  noindex: 'asks not to be indexed',
  robots: 'is excluded by robots.txt',
  robots_unreadable: 'is on a server whose robots.txt cannot be read',
  robots_of_redirect: 'redirects to a page that robots.txt excludes',
  other_site: 'redirects to another site',
};

/** Why a page has no document: a sentence without a full stop. */
export function failureOfPage({ url, reason }: CrawledPage): string {
  const status = /^http_(\d+)$/.exec(reason ?? '')?.[1];
  return `${url} ${status === undefined ? (TEXTS[reason ?? ''] ?? 'cannot be read') : `answered ${status}`}`;
}
