import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';

/** Types of events that a checkout has samples of, and that are not in the log of a data folder which nothing else has open. */
export async function unwrittenTypes(dataDir: string, checkout: string): Promise<string[]> {
  const store = await startEmbeddedEventStore({ dataDir: join(dataDir, 'eventstore'), port: 0 });
  try {
    const written = new Set((await readLog(store.url, '')).map(({ type }) => type));
    const libs = join(checkout, 'libs');
    const files = (await readdir(libs, { recursive: true })).filter((name) => name.endsWith('.samples.json'));
    const samples = await Promise.all(files.map((name) => readFile(join(libs, name), 'utf8')));
    const types = samples.flatMap((text) => Object.keys(asRecord(JSON.parse(text))));
    return types.filter((type) => !written.has(type)).toSorted();
  } finally {
    await store.stop();
  }
}
