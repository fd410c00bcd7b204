#!/usr/bin/env node
/** The `parley` command: administration of an installation, from the machine that holds it. */
import { parseConfig } from '#libs/platform/config/index.ts';
import { errorLines } from './errors.ts';
import { parleyProgram } from './program.ts';
import { openSession } from './session.ts';

const program = parleyProgram({
  environment: process.env,
  openSession: () => openSession(parseConfig(process.env)),
  print: (text) => void process.stdout.write(text),
  screen: process.stdout.isTTY === true && !process.env['NO_COLOR'] ? process.stdout : undefined,
  terminal: process.stderr.isTTY === true ? process.stderr : undefined,
});

// `parley list … | head`: whoever reads has enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync(process.argv);
} catch (error) {
  for (const line of errorLines(error)) process.stderr.write(`parley: ${line}\n`);
  process.exitCode = 1;
}
