import { execFile } from 'node:child_process';

/**
 * Runs a program.
 *
 * @returns its standard output
 * @throws Error with its output if it fails
 */
export function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} failed: ${error.message}\n${stdout}\n${stderr}`));
    });
  });
}
