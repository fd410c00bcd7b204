#!/usr/bin/env node
/** The `parley` command: runs Parley, and administers an installation from the machine that holds it. */
import { join } from 'node:path';

import { DEFAULT_NODE_FLAGS } from '#libs/platform/config/node-flags.ts';
import { oldNodeRefusal } from '#services/node-version.ts';
import { ROLE_NAMES } from '#services/roles.ts';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

// An older Node must be able to link this file, so everything that needs a newer one is imported below.
const refusal = oldNodeRefusal();
if (refusal !== null) {
  process.stderr.write(`parley: ${refusal}\n`);
  process.exit(1);
}

const serves = servesUntilStopped(process.argv[2]);
if (serves) withFlags();
// The first process of a container would not even be ended by a signal that nobody handles yet.
const stopEarly = (): void => process.exit(0);
if (serves) for (const signal of STOP_SIGNALS) process.on(signal, stopEarly);
// Half of what a start costs is to compile the same files again. Where it cannot be written, what is there is read.
const { enableCompileCache } = await import('node:module');
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/compiled'));
// Only now: to load all of it takes longer than to begin again.
const { runCli } = await import('./run.ts');
await runCli(process.argv, process.env);
// By now, whoever serves has said what is to happen.
for (const signal of STOP_SIGNALS) process.off(signal, stopEarly);

function servesUntilStopped(name: string | undefined): boolean {
  return name === 'standalone' || ROLE_NAMES.some((role) => role === name);
}

/**
 * A process that serves wants other flags of Node than a command: then this one begins again as a Node that has
 * them, with the same id, terminal and signals. Flags that somebody has given by hand are left as they are.
 */
function withFlags(): void {
  const [, main = ''] = process.argv;
  const flags = (process.env['PARLEY_NODE_FLAGS'] || DEFAULT_NODE_FLAGS).split(/\s+/).filter(Boolean);
  if (process.execArgv.length > 0 || flags.length === 0) return;
  // Not known to every system that Node runs on.
  process.execve?.(process.execPath, [process.execPath, ...flags, main, ...process.argv.slice(2)], process.env);
}
