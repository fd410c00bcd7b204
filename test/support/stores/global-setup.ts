/** Once per run, before the first test file: where the stores of all of them come from, said once. */
import { decideForAll } from './choice.ts';

export default async function setUpStores(): Promise<void> {
  await decideForAll((line) => process.stderr.write(`stores of the tests: ${line}\n`));
}
