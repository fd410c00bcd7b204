/** A control group of Linux with a limit of memory, as a container has one, for processes of this machine. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { eventually } from './eventually.ts';

export interface MemoryGroup {
  /** Starts a command in the group; its children are in it, too. */
  spawn(command: string, args: readonly string[], options: SpawnOptions): ChildProcess;
  /** Bytes of all processes that the system cannot take back: not those of files that it may drop. */
  resident(): number;
  /** How often the system has ended a process for memory. */
  kills(): number;
  /** Once its processes have ended. */
  remove(): Promise<void>;
}

const ROOT = '/sys/fs/cgroup';
const V2 = { root: ROOT, limit: 'memory.max', anonymous: 'anon', events: 'memory.events' };
const V1 = {
  root: join(ROOT, 'memory'),
  limit: 'memory.limit_in_bytes',
  anonymous: 'rss',
  events: 'memory.oom_control',
};

let groups = 0;

/** Null where this process may not make one: it needs root, and a Linux that is not a container with read-only groups. */
export function memoryGroup(limitBytes: number): MemoryGroup | null {
  const version = existsSync(join(ROOT, 'cgroup.controllers')) ? V2 : V1;
  const folder = join(version.root, `parley-test-${process.pid}-${groups++}`);
  const file = (name: string): string => join(folder, name);
  try {
    mkdirSync(folder);
    writeFileSync(file(version.limit), String(limitBytes));
  } catch {
    if (existsSync(folder)) rmdirSync(folder);
    return null;
  }
  const count = (name: string, key: string): number =>
    Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(readFileSync(file(name), 'utf8'))?.[1] ?? 0);
  return {
    spawn: (command, args, options) =>
      spawn('sh', ['-c', 'echo $$ > "$0" && exec "$@"', file('cgroup.procs'), command, ...args], options),
    resident: () => count('memory.stat', version.anonymous),
    kills: () => count(version.events, 'oom_kill'),
    remove: () => eventually(() => rmdirSync(folder)),
  };
}
