/** Runs with answers in forms that users of other clients report. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Endpoints, startEndpoints } from '#test/support/endpoints/endpoint.ts';
import { any, FORMS } from '#test/support/endpoints/forms.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Json, RunsApi } from '#test/support/runs-api.ts';

let endpoints: Endpoints;
let api: RunsApi;

beforeAll(async () => {
  endpoints = await startEndpoints([any]);
  const limits = { totalMs: 30_000, firstPartMs: 30_000, idleMs: 20_000, maxAttempts: 2 };
  api = await RunsApi.start({ model: { baseUrl: endpoints.baseUrl, name: 'any/default', limits } });
});
afterAll(async () => {
  await api?.stop();
  await endpoints?.stop();
});

const textOf = ({ content }: Json): string => content.map(({ text }: Json) => text).join('');

async function comesTo(model: string): Promise<readonly [string, number]> {
  const asked = await api.ask('When does it open?', { invocationConfig: { model_name: model } });
  const { status, error } = await api.ended(asked.runId);
  await eventually(async () =>
    expect(await api.types(asked.runId)).toContain(status === 'completed' ? 'RunCompleted' : 'RunEndShown'),
  );
  const tree = await api.tree(asked);
  const inRole = (role: string): Json[] => tree.filter(({ content_role }) => content_role === role);
  const texts = inRole('agent_response').map(textOf);
  const failure = status === 'completed' ? [] : [`failed: ${error.reason}`];
  return [[...failure, ...texts].join(': '), inRole('tool_call').length];
}

/** Also the slowest machine reads all of them within this. */
const PATIENT_MS = 600_000;
/** Runs at the same time: some of them repeat a request after a pause, and all of them share two processors. */
const AT_ONCE = 12;

describe('an answer', () => {
  it('is read in every form that endpoints give it', { timeout: PATIENT_MS }, async () => {
    const found = new Map<string, unknown>();
    const left = [...FORMS.entries()];
    const work = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const [index, { what, sends, repeats = '' }] = next;
        const model = `any/${index}`;
        endpoints.script(model, ...sends);
        const result = await comesTo(model);
        const isRepeated = JSON.stringify(endpoints.requests(model).at(-1)).includes(repeats);
        found.set(what, [...result, ...(isRepeated ? [] : ['not repeated'])]);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const wanted = FORMS.map((form) => [form.what, [form.comesTo, form.calls ?? 0]] as const);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  });
});
