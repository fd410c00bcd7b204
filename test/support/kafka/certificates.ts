/**
 * Certificates for a test broker and its clients: X.509 version 3 in DER (RFC 5280), made in process so that no
 * external program is needed. Valid from yesterday until tomorrow, for 127.0.0.1.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** PEM texts. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateAuthority {
  /** PEM text of its certificate. */
  readonly cert: string;
  /**
   * Returns a certificate that it has signed.
   * @param name its common name
   * @param options by default it is valid until tomorrow, for 127.0.0.1
   */
  issue(name: string, options?: IssueOptions): Certified;
}

export interface IssueOptions {
  readonly endsAt?: number;
  readonly address?: readonly number[];
  /** Signed by its own key, instead of by the authority. */
  readonly isSelfSigned?: boolean;
}

export function makeCertificateAuthority(name: string): CertificateAuthority {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signedBy = { name, key: own.privateKey };
  return {
    cert: certificate({ name, publicKey: own.publicKey, isAuthority: true }, signedBy),
    issue(subject, { endsAt, address, isSelfSigned = false } = {}) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const signer = isSelfSigned ? { name: subject, key: privateKey } : signedBy;
      return {
        cert: certificate({ name: subject, publicKey, isAuthority: false, endsAt, address }, signer),
        key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
      };
    },
  };
}

interface Subject {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly isAuthority: boolean;
  readonly endsAt?: number | undefined;
  readonly address?: readonly number[] | undefined;
}

function certificate(subject: Subject, issuer: { readonly name: string; readonly key: KeyObject }): string {
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.of(2))),
    der(INTEGER, Buffer.of(1), randomBytes(15)),
    ECDSA_WITH_SHA256,
    commonName(issuer.name),
    der(SEQUENCE, time(Date.now() - DAY_MS), time(subject.endsAt ?? Date.now() + DAY_MS)),
    commonName(subject.name),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, ...extensions(subject))),
  );
  const signature = sign('sha256', body, issuer.key);
  const whole = der(SEQUENCE, body, ECDSA_WITH_SHA256, der(BIT_STRING, Buffer.of(0), signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function extensions({ isAuthority, address = [127, 0, 0, 1] }: Subject): Buffer[] {
  // basicConstraints, critical.
  if (isAuthority) {
    const constraints = der(SEQUENCE, der(BOOLEAN, Buffer.of(0xff)));
    return [der(SEQUENCE, oid(0x55, 0x1d, 0x13), der(BOOLEAN, Buffer.of(0xff)), der(OCTET_STRING, constraints))];
  }
  // subjectAltName, with an address.
  return [der(SEQUENCE, oid(0x55, 0x1d, 0x11), der(OCTET_STRING, der(SEQUENCE, der(0x87, Buffer.from(address)))))];
}

const DAY_MS = 24 * 60 * 60 * 1_000;
const [BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OID] = [0x01, 0x02, 0x03, 0x04, 0x06];
const [UTF8_STRING, UTC_TIME, SEQUENCE, SET] = [0x0c, 0x17, 0x30, 0x31];
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

function commonName(name: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, oid(0x55, 0x04, 0x03), der(UTF8_STRING, Buffer.from(name)))));
}

function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, '').slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}

function oid(...bytes: readonly number[]): Buffer {
  return der(OID, Buffer.from(bytes));
}

/** Encodes tag, length and contents. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), contents]);
  const digits = length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, 0x80 | digits.length, ...digits), contents]);
}
