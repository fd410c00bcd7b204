/** A party that signs tokens for users, as the backend of an application does, and forgeries of its tokens. */
import { createHmac } from 'node:crypto';

import { exportJWK, exportSPKI, generateKeyPair, type CryptoKey, type JWK, SignJWT } from 'jose';

import { asRecord } from './log-reader.ts';
import type { Answer, Call } from './test-api.ts';

const DAY_SECONDS = 24 * 60 * 60;

export class Signer {
  readonly alg: string;
  readonly issuer: string;
  readonly audience = 'parley';
  readonly jwk: JWK;
  readonly pem: string;
  readonly #privateKey: CryptoKey;

  private constructor(alg: string, issuer: string, keys: { jwk: JWK; pem: string; privateKey: CryptoKey }) {
    this.alg = alg;
    this.issuer = issuer;
    this.jwk = keys.jwk;
    this.pem = keys.pem;
    this.#privateKey = keys.privateKey;
  }

  static async create(alg = 'EdDSA', issuer = 'https://shop.example.org', kid?: string): Promise<Signer> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }) };
    return new Signer(alg, issuer, { jwk, pem: await exportSPKI(publicKey), privateKey });
  }

  /** The body that registers this party. */
  get registration() {
    return { issuer: this.issuer, audience: this.audience, keys: [this.jwk], creates_users: true };
  }

  /** A valid token of the subject, but for what is given; undefined removes a claim. */
  async token(
    sub: string,
    claims: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
  ): Promise<string> {
    const { kid } = this.jwk;
    const protectedHeader = { alg: this.alg, ...(kid !== undefined && { kid }), ...header };
    return new SignJWT(this.claims(sub, claims)).setProtectedHeader(protectedHeader).sign(this.#privateKey);
  }

  claims(sub: string, claims: Record<string, unknown> = {}): Record<string, unknown> {
    const iat = Math.floor(Date.now() / 1_000);
    const { issuer: iss, audience: aud } = this;
    const all = { iss, aud, sub, iat, exp: iat + 600, ...claims };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  }

  /** Tokens that nobody must accept, by what is wrong with them. */
  async forgeries(sub: string): Promise<Record<string, string>> {
    const now = Math.floor(Date.now() / 1_000);
    const other = await Signer.create(this.alg, this.issuer);
    const valid = await this.token(sub);
    const [head = '', body = '', signature = ''] = valid.split('.');
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const payload = encoded(this.claims(sub));
    const hmac = (secret: string | Buffer, header: object = {}) => {
      const signed = `${encoded({ alg: 'HS256', typ: 'JWT', ...header })}.${payload}`;
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    };
    const wrong = (claims: Record<string, unknown>) => this.token(sub, claims);
    return {
      'alg none': `${encoded({ alg: 'none' })}.${payload}.`,
      'alg None': `${encoded({ alg: 'None' })}.${payload}.`,
      'alg none with a signature': `${encoded({ alg: 'none' })}.${payload}.${signature}`,
      'no alg': `${encoded({})}.${payload}.${signature}`,
      'alg of an inherited member': `${encoded({ alg: 'constructor' })}.${payload}.${signature}`,
      'HMAC with the PEM of the public key': hmac(this.pem),
      'HMAC with the trimmed PEM': hmac(this.pem.trim()),
      'HMAC with the JWK of the public key': hmac(JSON.stringify(this.jwk)),
      'HMAC with the bytes of the public key': hmac(Buffer.from(this.jwk.x ?? this.jwk.n ?? '', 'base64url')),
      'HMAC with nothing': hmac(''),
      'HMAC with a kid that names a file': hmac('', { kid: '../../../../dev/null' }),
      'a key of another party': await other.token(sub),
      'a key in the header': await other.token(sub, {}, { jwk: other.jwk }),
      'an address of keys in the header': await other.token(
        sub,
        {},
        { jku: 'http://127.0.0.1:1/jwks', x5u: 'http://127.0.0.1:1/' },
      ),
      'an unknown kid': await other.token(sub, {}, { kid: "' OR 1=1 --" }),
      'no signature': `${head}.${body}.`,
      'a signature cut short': valid.slice(0, -4),
      'other claims under the same signature': `${head}.${encoded(this.claims('someone-else'))}.${signature}`,
      'an extension that must be understood': `${encoded({ alg: this.alg, crit: ['b64'], b64: false })}.${body}.${signature}`,
      expired: await wrong({ iat: now - 700, exp: now - 61 }),
      'no expiry': await wrong({ exp: undefined }),
      'no time of issue': await wrong({ iat: undefined }),
      'longer than a day': await wrong({ exp: now + DAY_SECONDS + 120 }),
      'issued in the future': await wrong({ iat: now + 120 }),
      'not valid yet': await wrong({ nbf: now + 120 }),
      'times as texts': await wrong({ exp: String(now + 600) }),
      'another audience': await wrong({ aud: 'another-service' }),
      'no audience': await wrong({ aud: undefined }),
      'another issuer': await wrong({ iss: 'https://evil.example.org' }),
      'the issuer with a slash': await wrong({ iss: `${this.issuer}/` }),
      'a list of issuers': await wrong({ iss: [this.issuer] }),
      'no subject': await wrong({ sub: undefined }),
      'an empty subject': await wrong({ sub: '' }),
      'a subject that is no text': await wrong({ sub: 42 }),
      'an unknown limit': await wrong({ parley_scopes: ['read', 'admin'] }),
      'rights of an administrator': await wrong({ parley_scopes: ['admin'] }),
      'two parts': `${head}.${body}`,
      'four parts': `${valid}.x`,
      'no JSON': `${Buffer.from('{').toString('base64url')}.${body}.${signature}`,
      'too long': await wrong({ padding: 'x'.repeat(9_000) }),
      dots: '..',
    };
  }
}

interface Caller {
  call(call: Call): Promise<Answer>;
  readonly rootKey: string;
}

/** Registers a party with the first organization. @returns its id */
export async function register(api: Caller, signer: Signer, more: object = {}, key = api.rootKey): Promise<string> {
  const body = { ...signer.registration, ...more };
  const answer = await api.call({ method: 'POST', url: '/api/v1/token-issuers', key, body });
  if (answer.status !== 200) throw new Error(`the issuer was refused: ${answer.bytes}`);
  return String(asRecord(answer.json)['id']);
}
