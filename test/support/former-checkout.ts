import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

const CURRENT = resolve(import.meta.dirname, '../..');

/**
 * The folder of another version: an existing checkout as it is, or a new work tree of a commit.
 *
 * @param version a folder, or a commit
 * @param parent where a work tree is made. Its first start installs its packages; `forgetCheckouts` once it is deleted
 */
export function checkoutOf(version: string, parent: string): string {
  if (existsSync(join(version, 'package.json'))) return resolve(version);
  const checkout = join(parent, 'checkout');
  execFileSync('git', ['worktree', 'add', '--detach', checkout, version], { cwd: CURRENT, stdio: 'ignore' });
  return checkout;
}

export function forgetCheckouts(): void {
  execFileSync('git', ['worktree', 'prune'], { cwd: CURRENT });
}

/** The environment of commands in a checkout: it finds its own Node and packages, and no variables of this process. */
export function environmentOfCheckout(): { readonly PATH: string; readonly HOME: string } {
  const { PATH = '', HOME = '' } = process.env;
  const others = PATH.split(':').filter((path) => !path.includes('node_modules'));
  return { PATH: others.join(':'), HOME };
}
