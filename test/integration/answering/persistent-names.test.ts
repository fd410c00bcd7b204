/** Names and ids that the log, the consumer groups and other systems hold: a data folder of today depends on them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { EventMetadata } from '#libs/kernel/event.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { groupNameOf } from '#libs/platform/reactors/index.ts';
import { PROJECTIONS } from '#services/features.ts';
import { RunsApi } from '#test/support/runs-api.ts';

const STEPS = '5c0f5fd8-6a3b-4f0e-9a55-6a8c3b9f2d71';
const RUNS = '2f0b7c61-5f0e-4a53-9d3a-6c1d1a1f7f04';

let api: RunsApi;

beforeAll(async () => {
  api = await RunsApi.start();
});
afterAll(async () => {
  await api?.stop();
});

describe('persistent names of answering', () => {
  it('of consumer groups', () => {
    const groups = api.documents.api.features.reactors.map(groupNameOf);
    expect(groups.toSorted()).toEqual([
      'reactor-agent-runs-3954a7f9',
      'reactor-crawls-4440bce1',
      'reactor-document-ingestion-385d868c',
      'reactor-ended-invocations-67059e11',
      'reactor-external-runs-9231eabf',
      'reactor-graph-documents-5736688c',
      'reactor-invocations-49a35453',
      'reactor-media-delivery-cbb90bbb',
      'reactor-media-processing-ae46c05d',
      'reactor-report-research-04bdc86c',
      'reactor-report-writing-be4bda1a',
      'reactor-run-ends-e4a9a20f',
      'reactor-run-questions-866bd421',
    ]);
  });

  it('of categories', () => {
    const categories = PROJECTIONS.map(({ category }) => category);
    expect(categories.toSorted()).toEqual([
      'agent',
      'channel',
      'crawl',
      'document',
      'graph',
      'inbox',
      'invocation',
      'key',
      'media',
      'organization',
      'promptbudget',
      'read_marker',
      'report',
      'run',
      'runlane',
      'token_issuer',
      'user',
    ]);
  });

  it('of streams and the ids of commands', async () => {
    const asked = await api.ask('When does the warehouse in Bremen open?');
    const { runId, agentId, channelId } = asked;
    await api.ended(runId);
    const stream = `run-${runId}`;
    const events: StoredEvent[] = [];
    for await (const stored of api.platform.store.readStream(stream)) events.push(stored);
    const commandIdOf = (type: string, number = 0): string | undefined =>
      (events.filter((stored) => stored.type === type)[number]?.metadata as EventMetadata | undefined)?.commandId;
    const stepOf = (revision: number): string => derivedId(STEPS, `${stream} agent-runs ${stream}@${revision}`);
    const revisionOf = (type: string): number => events.findIndex((stored) => stored.type === type);
    expect(commandIdOf('RunClaimed.v1')).toBe(stepOf(0));
    expect(commandIdOf('ModelStepFinished.v1')).toBe(stepOf(revisionOf('RunClaimed.v1')));
    const toolStep = stepOf(revisionOf('ModelStepFinished.v1'));
    expect(commandIdOf('StepStarted.v1', 1)).toBe(derivedId(toolStep, 'intent'));
    expect(commandIdOf('ToolStepFinished.v1')).toBe(toolStep);

    const response = await api.response(asked);
    expect(response.span_id).toBe(derivedId(RUNS, `run-${runId} response`));
    const lane = `runlane-${derivedId(channelId, `runs of ${agentId}`)}`;
    const [entered] = await Array.fromAsync(api.platform.store.readStream(lane));
    const enter = derivedId(stepOf(0), 'effect enter lane');
    expect(entered?.metadata).toMatchObject({ commandId: enter });
  });

  it('of invocations and the runs that they request', async () => {
    const { agentId } = api;
    const body = { name: 'Questions', participants: [{ type: 'agent', id: agentId }] };
    const { id: channelId } = (await api.call('POST', '/api/v1/channels', body)).json;
    const mention = { type: 'agent', id: agentId, identifier: agentId, identifier_type: 'uuid' };
    const message = await api.post(channelId, 'When does it open?', { invocation_config: { mentions: [mention] } });
    const id = derivedId(channelId, `invocation ${message.sequence} ${agentId}`);
    await api.ended(id);
    const [invoked] = await Array.fromAsync(api.platform.store.readStream(`invocation-${id}`));
    expect(invoked?.data).toMatchObject({ id, runId: id });
    const [requested] = await Array.fromAsync(api.platform.store.readStream(`run-${id}`));
    expect(requested?.data).toMatchObject({ id, messageId: message.id });
  });
});
