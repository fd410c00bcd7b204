/**
 * A test process of somebody else: starts a Parley, says where, and what of it is left after the stop. Without
 * an end of its own: it ends when nothing keeps it. `stay` makes it wait until it is killed.
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
