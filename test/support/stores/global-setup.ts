/** Once per run, before the first test file: where the stores of all of them come from, said once. */
import { decideForAll } from './choice.ts';
import { claimNamedRedis } from './named-redis.ts';

export default async function setUpStores(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`stores of the tests: ${line}\n`);
  await claimNamedRedis(say);
  await decideForAll(say);
}
