/**
 * `npm run test:upgrade -- <commit or folder>`: whether a data folder of a former version opens with equal reads.
 *
 * The former version fills a folder through its API with entities of every kind. What all of its GET routes answer is
 * compared with the answers of this version on a copy, and on a copy whose read models it builds anew; then this version
 * writes, too, is started again, and is rebuilt. This version may answer more members. Everything else that differs fails,
 * unless `expected-differences.ts` or `--accept` names a part of its line.
 */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '#infra/private-redis/free-port.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import { checkoutOf, forgetCheckouts } from '#test/support/former-checkout.ts';
import { reportDifferences } from './compare.ts';
import { expectedDifferences } from './expected-differences.ts';
import { fill, type Filled } from './fill.ts';
import { startNeighbours } from './neighbours.ts';
import { Reader, type Readings } from './reads.ts';
import { type Started, startCheckout } from './server.ts';
import { unwrittenTypes } from './unwritten-types.ts';

const CURRENT = resolve(import.meta.dirname, '../..');
/** Of one entity; lists have new entries by then, and the organization, which agents show, another name. */
const OWN_ADDRESS = / \/api\/v1\/(?!organizations|agents\/[^/]+$)\w+\/[^/?]{16,}/;
const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: { keep: { type: 'boolean', default: false }, accept: { type: 'string', multiple: true, default: [] } },
});
const [former] = positionals;
if (former === undefined || positionals.length > 1) {
  say('usage: npm run test:upgrade -- [--keep] [--accept "part of a line"]… <commit, or folder of a checkout>');
  process.exit(2);
}

const folder = await mkdtemp(join(tmpdir(), 'parley-upgrade-'));
const neighbours = await startNeighbours();
let failed = false;
/** Parts of lines of differences that do not fail. */
const accepted = [...options.accept];
try {
  const checkout = checkoutOf(former, folder);
  for (const { part, reason } of expectedDifferences(checkout)) {
    say(`expected: ${part}: ${reason}`);
    accepted.push(part);
  }
  await main(checkout);
} finally {
  await neighbours.stop();
  if (options.keep) say(`kept: ${folder}`);
  else await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  forgetCheckouts();
}
say(failed ? 'FAILED' : 'passed');
process.exitCode = failed ? 1 : 0;

async function main(formerCheckout: string): Promise<void> {
  const key = createApiKey();
  const settings = {
    ...neighbours.settings,
    PORT: String(await freePort()),
    PARLEY_BOOTSTRAP_KEY: key,
    PARLEY_TOKEN_SECRET: 'the secret of both versions',
    RATE_LIMIT_PER_KEY: '0',
    RATE_LIMIT_PER_ADDRESS: '0',
    LOG_LEVEL: 'warn',
  };
  const on = async <T>(checkout: string, name: string, use: (parley: Started) => Promise<T>): Promise<T> => {
    const parley = await startCheckout(checkout, { ...settings, DATA_DIR: join(folder, name) });
    try {
      return await use(parley);
    } finally {
      await parley.stop();
    }
  };
  const fillAll = async (parley: Started, round: string): Promise<Filled> => {
    const filled = await fill(parley, key, neighbours, round);
    // The first time, repeatable requests are carried out.
    await otherReadings(parley, filled);
    return filled;
  };
  const copy = (to: string): Promise<void> =>
    cp(join(folder, 'former'), join(folder, to), { recursive: true, preserveTimestamps: true });

  say('the former version fills a data folder …');
  const filled = await on(formerCheckout, 'former', (parley) => fillAll(parley, 'one'));
  await copy('current');
  await copy('rebuilt');
  await rm(join(folder, 'rebuilt/redis'), { recursive: true });
  say(`events that it has not written: ${(await unwrittenTypes(join(folder, 'rebuilt'), formerCheckout)).join(', ')}`);

  say('the former version reads it …');
  const reader = new Reader(filled.callers, filled.values, filled.ids);
  const before = await on(formerCheckout, 'former', (parley) => discover(parley, reader, filled));
  const again = await on(formerCheckout, 'former', (parley) => readAgain(parley, reader, filled, before));
  report('the former version, started again', before, again);

  say('this version reads it …');
  const after = await on(CURRENT, 'current', (parley) => readAgain(parley, reader, filled, before));
  report('this version', before, after);
  const rebuilt = await on(CURRENT, 'rebuilt', (parley) => readAgain(parley, reader, filled, before));
  // Unfinished uploads are in Redis alone (decision 68).
  const durable = new Map([...before].filter(([address]) => !address.includes('/media/uploads/')));
  report('this version, without the former data of Redis', durable, rebuilt);

  say('this version writes …');
  const more = await on(CURRENT, 'current', (parley) => fillAll(parley, 'two'));
  const second = new Reader(more.callers, more.values, more.ids);
  const written = await on(CURRENT, 'current', (parley) => discover(parley, second, more));
  await on(CURRENT, 'current', async (parley) => {
    report('this version after its own writes, started again', written, await readAgain(parley, second, more, written));
    await parley.parley('rebuild');
    report('this version after a rebuild', written, await readAgain(parley, second, more, written));
    const entities = new Map([...before].filter(([address]) => OWN_ADDRESS.test(address)));
    report(
      'entities of the former version after these writes',
      entities,
      await readAgain(parley, reader, filled, entities),
    );
  });
}

async function discover(parley: Started, reader: Reader, filled: Filled): Promise<Readings> {
  const others = await otherReadings(parley, filled);
  const { readings, unread } = await reader.discover();
  for (const route of unread) say(`no address of ${route} was found`);
  return kept(new Map([...readings, ...others]));
}

async function readAgain(parley: Started, reader: Reader, filled: Filled, known: Readings): Promise<Readings> {
  const addresses = new Map([...known].filter(([address]) => !address.startsWith('once ')));
  const others = await otherReadings(parley, filled);
  return kept(new Map([...(await reader.again(addresses)), ...others]));
}

/** Exports, and requests that are repeated with their `Idempotency-Key`. */
async function otherReadings(parley: Started, { channels, repeatable, callers }: Filled): Promise<Readings> {
  const readings: Readings = new Map();
  for (const { path, body, headers } of repeatable) {
    const response = await callers['admin']?.fetch('POST', path, body, headers);
    if (response === undefined) throw new Error('there is no admin');
    readings.set(`once POST ${path}`, {
      status: response.status,
      etag: response.headers.get('etag'),
      text: await response.text(),
    });
  }
  for (const channel of channels) {
    readings.set(`once export ${channel}`, { status: 0, etag: null, text: await parley.parley('export', channel) });
  }
  return readings;
}

async function kept(readings: Readings): Promise<Readings> {
  if (options.keep) await writeFile(join(folder, `readings-${Date.now()}.json`), JSON.stringify([...readings]));
  return readings;
}

function report(title: string, before: Readings, after: Readings): void {
  if (!reportDifferences(title, before, after, accepted, say)) failed = true;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
