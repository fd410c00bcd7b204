/**
 * Why TLS with an event store does not work. The official client reports errors of OpenSSL, and while it discovers a
 * cluster none at all; so this module tries the handshake itself.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { codeOf } from '#libs/kernel/faults.ts';
import { parseEventStoreUrl, type EventStoreUrl } from '#libs/platform/config/index.ts';

export interface TlsProblem {
  /** The reason and what to do, without names of hosts. */
  readonly why: string;
  /** `host:port`. */
  readonly where: string;
}

const HANDSHAKE_MS = 1_000;
/** The client's preface (RFC 9113, 3.4): its fixed bytes, and a SETTINGS frame without settings. */
const HTTP2_PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0),
]);

/** By codes of Node and of OpenSSL. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/DEPTH_ZERO_SELF_SIGNED/, 'its certificate is self-signed; name it in tlsCAFile, if you trust it'],
  [
    /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER|VERIFY)/,
    'the CA of its certificate is not trusted; name that in tlsCAFile',
  ],
  [/CERT_HAS_EXPIRED/, 'its certificate, or that of its CA, has expired'],
  [/CERT_NOT_YET_VALID/, 'its certificate is not valid yet; check the clocks'],
  [/ALTNAME_INVALID/, 'its certificate is of another host; use a name that it holds'],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/,
    'the server does not speak TLS; add tls=false, if it has none',
  ],
  [/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION/, 'the server offers no version of TLS from 1.2 on'],
  [
    /CERTIFICATE_REQUIRED|ALERT_(BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/,
    'the server refuses the handshake or the certificate of the client; check userCertFile and userKeyFile',
  ],
  [/APPLICATION_PROTOCOL/, 'the server speaks TLS, but not HTTP/2'],
  [/ECONNRESET|ERR_SOCKET_CLOSED|EPIPE/, 'the server ends the connection during the TLS handshake'],
];

/** Failures of the connection below TLS. */
const NOT_OF_TLS = /^(ECONNREFUSED|ENOTFOUND|EAI_|E(HOST|NET)|ETIMEDOUT|EADDRNOTAVAIL)/;

/** Tries each host of an event store's address. @returns null if TLS works with one of them, or no host answers */
export async function tlsProblemOf(url: string): Promise<TlsProblem | null> {
  const address = parseEventStoreUrl(url);
  const problems = await Promise.all(
    address.hosts.map(async ({ host, port }) => {
      const why = await (address.tls ? failureOf(address, host, port) : needOf(host, port)).catch(reasonOf);
      return why === null ? why : { why, where: `${host}:${port}` };
    }),
  );
  return problems.includes(null) ? null : (problems[0] ?? null);
}

/** Why a handshake fails. Rejects when a file cannot be used. */
async function failureOf({ files }: EventStoreUrl, host: string, port: number): Promise<string | null> {
  const read = (path: string | undefined) => (path === undefined ? undefined : readFileSync(path));
  const { tlscafile, usercertfile, userkeyfile } = files;
  const pems = { ca: read(tlscafile), cert: read(usercertfile), key: read(userkeyfile) };
  const servername = isIP(host) === 0 ? host : '';
  return answerOf({ host, port, servername, ...pems, ALPNProtocols: ['h2'] }, (socket, settle) => {
    socket.on('secureConnect', () => {
      if (socket.alpnProtocol === 'h2') socket.write(HTTP2_PREFACE);
      else settle('the server speaks TLS, but not HTTP/2');
    });
    // Only an answer shows that the server has also accepted the client's certificate.
    socket.on('data', () => settle(null));
    socket.on('error', (error) => settle(reasonOf(error)));
    socket.on('close', () => settle('the server ends the connection during the TLS handshake'));
  });
}

/** Whether a server whose address has `tls=false` expects TLS. Sends nothing over the connection. */
function needOf(host: string, port: number): Promise<string | null> {
  return answerOf({ host, port, rejectUnauthorized: false }, (socket, settle) => {
    socket.on('secureConnect', () => settle('the server expects TLS; leave out tls=false'));
    socket.on('error', () => settle(null));
  });
}

/** A server that does not answer at all has another problem than TLS. */
async function answerOf(
  options: ConnectionOptions,
  observe: (socket: TLSSocket, settle: (why: string | null) => void) => void,
): Promise<string | null> {
  const answer = Promise.withResolvers<string | null>();
  const socket = connect(options);
  observe(socket, answer.resolve);
  const timer = setTimeout(answer.resolve, HANDSHAKE_MS, null);
  try {
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

function reasonOf(error: unknown): string | null {
  const code = String(codeOf(error) ?? error);
  if (NOT_OF_TLS.test(code)) return null;
  const [, reason = `the TLS handshake fails with ${code}`] = REASONS.find(([codes]) => codes.test(code)) ?? [];
  return reason;
}
