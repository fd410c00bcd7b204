/** The Node that Parley needs. In a file that imports nothing, so that an older Node can load it: see `cli/main.ts`. */

/** The first with `node:sqlite` without a flag. */
const OLDEST_NODE = [22, 13] as const;

/** @returns the start of a message when this Node is too old to run Parley, else null */
export function oldNodeRefusal(version: string = process.versions.node): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return `Parley runs on Node ${OLDEST_NODE.join('.')} or newer, and this is ${version}`;
}
