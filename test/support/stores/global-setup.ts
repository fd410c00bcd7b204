/** Runs once, before the first test file: chooses where stores come from, and prints it. */
import { decideForAll } from './choice.ts';
import { claimNamedRedis } from './named-redis.ts';

export default async function setUpStores(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`stores of the tests: ${line}\n`);
  await claimNamedRedis(say);
  await decideForAll(say);
}
