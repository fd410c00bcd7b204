/** Runs the client scenarios of the public conformance suite against the client that agents' workers use. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { npmPackage } from '#test/support/foreign-packages.ts';

/** The first version with scenarios of 2026. */
const VERSION = '0.2.0-alpha.12';

/** Scenarios by the era that a server is first asked in. */
const SCENARIOS = {
  initialized: ['initialize', 'tools_call', 'sse-retry', 'json-schema-2020-12-preservation'],
  stateless: [
    'request-metadata',
    'http-custom-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
} as const;

/** Scenarios that are not run, and why. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  'auth/*': 'Parley does not ask for authorization: an administrator gives it a token',
  'elicitation-sep1034-client-defaults': 'a run has no user who could be asked; servers learn that',
  'http-standard-headers': 'it wants requests for resources and prompts, which agents do not make',
  'http-invalid-tool-headers': 'tools with a wrong x-mcp-header are offered, and called without the header',
  'sep-2322-client-request-state': 'it wants the answers of a user, too; a state alone is sent back',
  'sep-2640-*': 'skills of servers are not used',
};

export async function* runConformance(
  say: (line: string) => void,
): AsyncGenerator<{ readonly name: string; readonly problem: string | null }> {
  const folder = await npmPackage('@modelcontextprotocol/conformance', VERSION, say);
  for (const [scenario, why] of Object.entries(UNSUPPORTED)) say(`left out: conformance ${scenario}: ${why}`);
  for (const [era, scenarios] of Object.entries(SCENARIOS)) {
    for (const scenario of scenarios) {
      const name = `conformance ${VERSION} (${era} first): ${scenario}`;
      yield { name, problem: await problemOf(folder, scenario, era) };
    }
  }
}

async function problemOf(folder: string, scenario: string, era: string): Promise<string | null> {
  const results = await mkdtemp(join(tmpdir(), 'parley-conformance-'));
  try {
    const client = `${process.execPath} ${join(import.meta.dirname, 'client.process.ts')}`;
    const args = [join(folder, 'dist/index.js'), 'client', '--command', client, '--scenario', scenario, '-o', results];
    const env = { ...process.env, PARLEY_FIRST_ERA: era, NO_COLOR: '1' };
    const suite = spawn(process.execPath, args, { cwd: results, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, errors] = await Promise.all([text(suite.stdout), text(suite.stderr)]);
    if (suite.exitCode === 0 || out.includes('OVERALL: PASSED') || errors.includes('OVERALL: PASSED')) return null;
    const failed = /Failed Checks:\n([^]*)/.exec(`${out}${errors}`)?.[1] ?? `${out}${errors}`;
    return failed.trim().slice(0, 600);
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}
