/**
 * A test process of another project: starts a Parley, prints its address, and prints what remains after the stop. It
 * does not exit by itself: it ends when nothing keeps it alive. `stay` makes it wait until it is killed.
 */
import { startParley } from '#services/testing/index.ts';

const listeners = (): string[] =>
  process
    .eventNames()
    .map((name) => `${String(name)} ${process.listenerCount(name)}`)
    .toSorted();

const before = listeners();
const parley = await startParley();
process.stdout.write(`${JSON.stringify({ url: parley.url })}\n`);
if (process.argv[2] !== 'stay') {
  await parley.createChannel();
  await parley.stop();
  process.stdout.write(`${JSON.stringify({ before, after: listeners() })}\n`);
}
