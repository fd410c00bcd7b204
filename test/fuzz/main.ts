/**
 * `npm run fuzz [-- --seconds 60 --examples 50 --seed 1 --member]`: runs Schemathesis against a whole Parley, driven by its
 * own OpenAPI document; with `--member`, as a user with a token that takes part in one channel. Fails on a 5xx, a crash, an undocumented answer, and on any write of a refused request. Not
 * part of `npm test`: it needs Python and PyPI. Without them it exits with 77.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import type { ApiClient } from '#test/support/api-client.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { readLog } from '#test/support/log-reader.ts';
import { Signer } from '#test/support/member-tokens.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { findingsOf } from './findings.ts';
import { fuzz, installSchemathesis } from './schemathesis.ts';

const USAGE = 'npm run fuzz [-- --seconds 60 --examples 50 --seed 1 --member]';

const { values } = options();

function options() {
  try {
    return parseArgs({
      options: {
        seconds: { type: 'string', default: '60' },
        examples: { type: 'string', default: '50' },
        seed: { type: 'string', default: '1' },
        member: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    console.error(`fuzz: ${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}

if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

/** The exit code of skipped tests, as in Automake and Meson. */
const SKIPPED = 77;

process.exit(await main());

async function main(): Promise<number> {
  let command: string;
  try {
    command = await installSchemathesis((line) => console.log(line));
  } catch (error) {
    console.error(`fuzz: skipped: ${error instanceof Error ? error.message : String(error)}`);
    return SKIPPED;
  }
  const folder = await mkdtemp(join(tmpdir(), 'parley-fuzz-'));
  const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  try {
    const isClean = await attack(command, { folder, eventstoreUrl: eventStore.url, redisUrl: redis.url });
    return isClean ? 0 : 1;
  } finally {
    await Promise.all([eventStore.stop(), redis.stop(), rm(folder, { recursive: true, force: true })]);
  }
}

async function attack(
  command: string,
  { folder, eventstoreUrl, redisUrl }: { folder: string; eventstoreUrl: string; redisUrl: string },
): Promise<boolean> {
  const parley = await startParleyProcess({ eventstoreUrl, redisUrl });
  const findings: string[] = [];
  try {
    await parley.ready();
    const apiKey = values.member ? await memberOf(parley.api) : parley.apiKey;
    const before = (await eventsOf(eventstoreUrl)).length;
    const { code, exchanges } = await fuzz(command, {
      baseUrl: parley.baseUrl,
      apiKey,
      seconds: Number(values.seconds),
      examples: Number(values.examples),
      seed: Number(values.seed),
      folder,
    });
    if (code !== 0) findings.push(`Schemathesis ended with ${code}: see its failures above`);
    if (!parley.alive()) findings.push(`Parley has ended:\n${parley.output().slice(-3_000)}`);
    else await parley.ready().catch((error: unknown) => findings.push(`Parley does not get ready: ${String(error)}`));
    const events = (await eventsOf(eventstoreUrl)).slice(before);
    findings.push(...findingsOf(exchanges, events));
    console.log(
      `\n${exchanges.length} requests (${tally(exchanges.map(({ status }) => status))}), ${events.length} events`,
    );
  } finally {
    const exit = await parley.stop();
    if (exit !== 0) findings.push(`Parley did not stop properly: ${exit}`);
  }
  for (const finding of findings) console.error(`FOUND  ${finding}`);
  console.log(findings.length === 0 ? 'nothing found' : `${findings.length} findings; seed ${values.seed}`);
  return findings.length === 0;
}

/** @returns a token of a user that takes part in one channel */
async function memberOf(api: ApiClient): Promise<string> {
  const shop = await Signer.create();
  const registered = await api.post('/api/v1/token-issuers', shop.registration);
  if (registered.status !== 200) throw new Error(registered.text);
  const token = await shop.token('ada', { exp: Math.floor(Date.now() / 1_000) + 12 * 60 * 60 });
  const channel = await api.withKey(token).post('/api/v1/channels', { name: 'of the member' });
  if (channel.status !== 200) throw new Error(channel.text);
  return token;
}

async function eventsOf(eventstoreUrl: string) {
  return (await readLog(eventstoreUrl, '')).filter(({ type }) => !type.startsWith('$'));
}

function tally(statuses: readonly (number | null)[]): string {
  const counts = new Map<string, number>();
  for (const status of statuses) counts.set(String(status), (counts.get(String(status)) ?? 0) + 1);
  return [...counts]
    .sort()
    .map(([status, count]) => `${status}: ${count}`)
    .join(', ');
}
