/** Projectors as processes. */
import { join } from 'node:path';
import { startTestProcess, type TestProcess } from './child-process.ts';

/** `detail` is its part of `/health/ready`. */
export type ProjectorProcess = TestProcess;

/** @param env its configuration, as environment variables */
export function startProjectorProcess(env: Readonly<Record<string, string>>): ProjectorProcess {
  return startTestProcess(join(import.meta.dirname, 'projector.process.ts'), env);
}
