/** Projectors as processes, and the ways in which a process can fail. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { asRecord } from './log-reader.ts';

export interface ProjectorProcess {
  /** `kill -9`; resolves when the process is gone. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** What its part of `/health/ready` says. */
  detail(): Promise<Record<string, unknown>>;
}

/** As for whole Parleys: most of a start is reading TypeScript. */
const COMPILE_CACHE = join(tmpdir(), 'parley-test-compile-cache');

/** @param env its configuration, as environment variables */
export function startProjectorProcess(env: Readonly<Record<string, string>>): ProjectorProcess {
  const child = fork(join(import.meta.dirname, 'projector.process.ts'), [], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env, LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  return {
    async kill9() {
      child.kill('SIGKILL');
      await exited;
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async detail() {
      const answer = once(child, 'message');
      child.send('detail');
      const [detail] = await answer;
      return asRecord(detail);
    },
  };
}
