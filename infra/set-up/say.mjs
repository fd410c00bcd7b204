// The files of this folder are plain JavaScript without dependencies: they run on the system's Node (20 or newer),
// before anything is installed.

/** Prints one line of progress. */
export function say(line) {
  process.stderr.write(`parley: ${line}\n`);
}

/** A prerequisite is missing that the set-up cannot install; the message says what to do. */
export class SetUpError extends Error {}

/** Runs `main`; prints the message of a `SetUpError`, with exit code 1. */
export async function tellErrors(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    for (const line of error.message.split('\n')) say(line);
    process.exit(1);
  }
}
