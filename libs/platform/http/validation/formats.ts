/**
 * Formats of strings, with the errors of pydantic 2. Each function returns the error, or `undefined` for a valid value.
 */
import type { PydanticError } from './pydantic-errors.ts';

const UUID = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/i;

/** Accepts UUIDs with and without hyphens; `urn:uuid:…` and `{…}`, which pydantic accepts too, are no ids of paths. */
export function uuidProblem(value: string): PydanticError | undefined {
  if (UUID.test(value)) return undefined;
  const error = uuidReason(value);
  return { type: 'uuid_parsing', msg: `Input should be a valid UUID, ${error}`, ctx: { error } };
}

const GROUPS = [8, 4, 4, 4, 12];

function uuidReason(value: string): string {
  let at = 0;
  for (const character of value) {
    if (!/[0-9a-fA-F-]/.test(character)) return `invalid character: found \`${character}\` at ${at}`;
    at += 1;
  }
  const groups = value.split('-');
  if (groups.length === 1) return `invalid length: found ${value.length}`;
  if (groups.length !== 5) return `invalid group count: expected 5, found ${groups.length}`;
  const wrong = groups.findIndex((group, index) => group.length !== GROUPS[index]);
  return `invalid group length in group ${wrong}: expected ${GROUPS[wrong]}, found ${groups[wrong]?.length}`;
}

/** Why a string is no URL of http or https; undefined for one that is. */
export function urlProblem(value: string): string | undefined {
  const url = URL.parse(value);
  if (url === null) return `not a valid URL: ${urlReason(value)}`;
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return "the scheme of a URL is 'http' or 'https'";
  return /[\0\r\n\t]/.test(value) ? 'not a valid URL: it has control characters' : undefined;
}

/** Finds the usual reasons, because `URL` does not report one. */
function urlReason(value: string): string {
  if (value.trim() === '') return 'input is empty';
  const scheme = /^\s*[A-Za-z][A-Za-z0-9+.-]*:/.exec(value);
  if (!scheme) return 'relative URL without a base';
  const authority = /^[/\\]*([^/?#\\]*)/.exec(value.slice(scheme[0].length))?.[1] ?? '';
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  if (host === '' || host.startsWith(':')) return 'empty host';
  if (/:[^\]]*\D[^\]]*$/.test(host) || Number(/:(\d+)$/.exec(host)?.[1] ?? 0) > 65_535) return 'invalid port number';
  if (host.startsWith('[')) return 'invalid IPv6 address';
  if (/^[\d.]+$/.test(host)) return 'invalid IPv4 address';
  return 'invalid international domain name';
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?$/;

/** RFC 3339. The offset is required, because a time without one depends on the machine. */
export function timestampProblem(value: string): PydanticError | undefined {
  const parts = RFC3339.exec(value);
  const error = dateReason(value) ?? (parts && inRange(parts) ? yearReason(value) : timeReason(value));
  if (error !== undefined) {
    const msg = `Input should be a valid datetime or date, ${error}`;
    return { type: 'datetime_from_date_parsing', msg, ctx: { error } };
  }
  if (parts?.[5] === undefined) return { type: 'timezone_aware', msg: 'Input should have timezone info' };
  return undefined;
}

function inRange([, , hour, minute, second, offset = 'Z']: RegExpExecArray): boolean {
  const [, offsetHour = 0, offsetMinute = 0] = offset.split(/[+:-]/).map(Number);
  return Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60 && offsetHour < 24 && offsetMinute < 60;
}

/** The error in the date at the start, at which pydantic stops. */
function dateReason(value: string): string | undefined {
  if (value.length < 10) return 'input is too short';
  if (!/^\d{4}/.test(value)) return 'invalid character in year';
  if (value[4] !== '-') return 'invalid date separator, expected `-`';
  if (!/^\d{2}/.test(value.slice(5))) return 'invalid character in month';
  if (value[7] !== '-') return 'invalid date separator, expected `-`';
  if (!/^\d{2}/.test(value.slice(8))) return 'invalid character in day';
  const [year = 0, month = 0, day = 0] = value.slice(0, 10).split('-').map(Number);
  if (year === 0) return 'year 0 is out of range';
  if (month < 1 || month > 12) return 'month value is outside expected range of 1-12';
  // Leap years repeat every 400 years; `Date` reads years below 100 as 19xx.
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  return day < 1 || day > days ? 'day value is outside expected range' : undefined;
}

/** Times are stored in UTC, where RFC 3339 knows the years to 9999 only. */
function yearReason(value: string): string | undefined {
  const year = new Date(value).getUTCFullYear();
  return year >= 0 && year <= 9999 ? undefined : 'year is out of range in UTC';
}

/** Pydantic reads a date alone as midnight without a time zone. */
function timeReason(value: string): string | undefined {
  return value.length === 10 ? undefined : 'unexpected extra characters at the end of the input';
}
