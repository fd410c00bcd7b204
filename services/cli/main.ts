#!/usr/bin/env node
/** The command `parley`: runs and administers Parley. */
import { join } from 'node:path';

import { nodeStart } from '#libs/platform/config/memory.ts';
import { oldNodeRefusal } from '#services/node-version.ts';
import { ROLE_NAMES } from '#services/roles.ts';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

// An older Node must be able to link this file, so modules that need a newer one are imported dynamically below.
const refusal = oldNodeRefusal();
if (refusal !== null) {
  process.stderr.write(`parley: ${refusal}\n`);
  process.exit(1);
}

const serves = servesUntilStopped(process.argv[2]);
if (serves) withFlags();
// Without a handler, a signal does not end the first process of a container.
const stopEarly = (): void => process.exit(0);
if (serves) for (const signal of STOP_SIGNALS) process.on(signal, stopEarly);
// Half of the start is the compilation of unchanged files. If the folder is read-only, existing entries are used. Threads
// and child processes know the folder by the variable alone.
const { enableCompileCache } = await import('node:module');
const compiled = (process.env['NODE_COMPILE_CACHE'] ??= join(
  import.meta.dirname,
  '../../node_modules/.cache/compiled',
));
enableCompileCache(compiled);
// After `withFlags`, because loading these modules takes longer than starting Node again.
const { runCli } = await import('./run.ts');
await runCli(process.argv, process.env);
// A process that serves has its own handlers by now.
for (const signal of STOP_SIGNALS) process.off(signal, stopEarly);

function servesUntilStopped(name: string | undefined): boolean {
  return name === 'standalone' || ROLE_NAMES.some((role) => role === name);
}

/**
 * Replaces this process by a Node with the flags for serving; id, terminal and signals stay the same. Does nothing if
 * Node was started with flags.
 */
function withFlags(): void {
  const [, main = ''] = process.argv;
  const { flags, environment } = nodeStart(process.env);
  if (process.execArgv.length > 0 || flags.length === 0) return;
  const args = [process.execPath, ...flags, main, ...process.argv.slice(2)];
  // Not available on every system.
  process.execve?.(process.execPath, args, { ...environment, ...process.env });
}
