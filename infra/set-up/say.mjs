// Everything in this folder is plain JavaScript without dependencies: it runs on the system's Node (20 or
// newer), before anything is installed.

/** One line of progress for whoever waits in front of the terminal. */
export function say(line) {
  process.stderr.write(`parley: ${line}\n`);
}

/** Something is missing that the set-up cannot provide; its message says what to do. */
export class SetUpError extends Error {}

/** Runs `main`; a `SetUpError` is told in its own words, exit code 1. */
export async function tellErrors(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    for (const line of error.message.split('\n')) say(line);
    process.exit(1);
  }
}
