/** Packages of Debian, unpacked to a temporary folder instead of installed. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface UnpackedPackages {
  /** Their root: files are at their usual paths below it. */
  readonly folder: string;
  remove(): Promise<void>;
}

/**
 * Downloads packages and unpacks them. Omits the packages that these depend on.
 *
 * @param writesTo a folder at a fixed path that their programs need; created, and removed again, if there is none
 * @returns `missing`: why they cannot be used, such as a system without `apt-get`
 */
export async function unpackPackages(
  names: readonly string[],
  writesTo: string | null = null,
): Promise<UnpackedPackages | { readonly missing: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-packages-'));
  const created = [folder];
  const remove = async (): Promise<void> => {
    for (const one of created) await rm(one, { recursive: true, force: true });
  };
  try {
    await run('apt-get', ['download', ...names], { cwd: folder });
    for (const file of await readdir(folder)) await run('dpkg', ['-x', join(folder, file), folder]);
    const first = writesTo && (await mkdir(writesTo, { recursive: true }));
    if (first) created.push(first);
    return { folder, remove };
  } catch (error) {
    await remove();
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return { missing: `the packages ${names.join(', ')} of Debian cannot be used here (${why})` };
  }
}
