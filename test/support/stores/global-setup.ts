/** Runs once, before the first test file: chooses where stores come from, and prints it; opens the folder of the run. */
import { endSharedBroker } from '../kafka/shared-broker.ts';
import { openRunFolder } from '../once-per-run.ts';
import { decideForAll } from './choice.ts';
import { claimNamedRedis } from './named-redis.ts';

/** @returns what runs after the last test file */
export default async function setUp(): Promise<() => Promise<void>> {
  const say = (line: string): void => void process.stderr.write(`stores of the tests: ${line}\n`);
  await claimNamedRedis(say);
  await decideForAll(say);
  const removeRunFolder = await openRunFolder();
  return async () => {
    await endSharedBroker();
    await removeRunFolder();
  };
}
