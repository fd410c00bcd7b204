/** The whole API with a worker, a graph with a document, an agent that knows it, and calls for runs. */
import { expect } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { startReactors } from '#services/worker/role.ts';

import { DocumentsApi } from './documents-api.ts';
import { eventually } from './eventually.ts';
import type { TestPlatformOptions } from './platform.ts';
import type { Answer, Call } from './test-api.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
export type Json = any;

const HANDBOOK = `# Warehouse handbook

## Opening hours

The warehouse in Bremen opens at nine and closes at five. Deliveries arrive at the north gate.

## Safety

Forklifts must not carry passengers. Helmets are worn in every aisle.`;

/** A message, and the run that answers it. */
export interface Asked {
  readonly text: string;
  readonly channelId: string;
  readonly agentId: string;
  readonly message: Json;
  readonly runId: string;
  readonly invocationConfig: Record<string, unknown> | null;
  /** Hops between agents before the run. */
  readonly depth: number;
}

export class RunsApi {
  readonly documents: DocumentsApi;
  graph = '';
  agentId = '';

  static async start(options: TestPlatformOptions = {}): Promise<RunsApi> {
    const runs = new RunsApi(await DocumentsApi.start(options));
    const { documents } = runs;
    runs.graph = await documents.newGraph();
    const text = { text: HANDBOOK, content_type: 'text/markdown' };
    const id = await documents.newDocument({ knowledge_graph: runs.graph, name: 'Warehouse handbook', ...text });
    expect(await documents.settled(id)).toMatchObject({ status: 'Ready' });
    runs.agentId = (await runs.newAgent({ name: 'Ada', knowledge_graph: runs.graph })).id;
    return runs;
  }

  constructor(documents: DocumentsApi) {
    this.documents = documents;
  }

  get platform() {
    return this.documents.api.stores.platform;
  }

  get organizationId(): string {
    return this.documents.api.organizationId;
  }

  get foreignKey(): string {
    return this.documents.foreignKey;
  }

  stop(): Promise<void> {
    return this.documents.stop();
  }

  call(method: Call['method'], url: string, body?: object, key = this.documents.api.rootKey): Promise<Answer> {
    return this.documents.call(method, url, body, {}, key);
  }

  async newAgent(body: object): Promise<Json> {
    const created = await this.call('POST', '/api/v1/agents', body);
    expect(created.status).toBe(200);
    return created.json;
  }

  /** Another worker of the same process. */
  startWorker(): Promise<RunningRole> {
    const { features } = this.documents.api;
    return startReactors({ platform: this.platform, features, logChecked: Promise.resolve() }, features.reactors);
  }

  async withoutWorker<T>(run: () => Promise<T>): Promise<T> {
    await this.documents.stopWorker();
    try {
      return await run();
    } finally {
      await this.documents.startWorker();
    }
  }

  async newChannel(): Promise<string> {
    return (await this.call('POST', '/api/v1/channels', { name: 'Questions' })).json.id;
  }

  async post(channelId: string, text: string, more: object = {}): Promise<Json> {
    const body = { content: [{ type: 'text', text }], ...more };
    const posted = await this.call('POST', `/api/v1/channels/${channelId}/interactions`, body);
    expect(posted.status).toBe(200);
    return posted.json;
  }

  /** Posts a message and requests a run of an agent on it. */
  async ask(
    text: string,
    options: Partial<Pick<Asked, 'agentId' | 'channelId' | 'invocationConfig' | 'depth'>> = {},
  ): Promise<Asked> {
    const { agentId = this.agentId, channelId = await this.newChannel(), invocationConfig = null, depth = 0 } = options;
    const message = await this.post(channelId, text);
    const asked = { text, channelId, agentId, message, runId: newId(), invocationConfig, depth };
    await this.request(asked);
    return asked;
  }

  async request({ runId: id, agentId, channelId, message, invocationConfig, depth }: Asked): Promise<void> {
    const { features } = this.documents.api;
    const context = {
      commandId: id,
      organizationId: this.organizationId,
      actor: { type: 'system', id: 'test' } as const,
      at: new Date().toISOString(),
    };
    const { id: messageId, interaction_id: turnId, span_id: spanId } = message;
    await features.runs.request(context, {
      id,
      agentId,
      channelId,
      messageId,
      turnId,
      spanId,
      depth,
      invocationConfig,
    });
  }

  async run(id: string): Promise<Json> {
    const { status, json } = await this.call('GET', `/api/v1/runs/${id}`);
    expect(status).toBe(200);
    return json;
  }

  ended(id: string): Promise<Json> {
    return eventually(
      async () => {
        const run = await this.run(id);
        expect(run.status).toMatch(/^(completed|failed|cancelled)$/);
        return run;
      },
      { timeoutMs: 50_000 },
    );
  }

  /** What is below the message, by sequence. */
  async tree({ message }: Asked): Promise<Json[]> {
    const query = 'include_nested_interactions=true&include_incomplete=true';
    return (await this.call('GET', `/api/v1/interactions/${message.id}?${query}`)).json.nested_interactions;
  }

  async response(asked: Asked): Promise<Json> {
    const found = (await this.tree(asked)).filter(({ content_role }) => content_role === 'agent_response');
    expect(found).toHaveLength(1);
    return found[0];
  }

  /** Types of the events of a run, without versions. */
  async types(runId: string): Promise<string[]> {
    return (await this.documents.types(`run-${runId}`)).map((type) => type.replace('.v1', ''));
  }

  /** One event of a run as workers handle it; null if the reactor does not, or there is none. */
  async stepOf(
    runId: string,
    revision: number,
    of: 'agent-runs' | 'run-ends' | 'run-questions' | 'external-runs' = 'agent-runs',
  ) {
    const { features } = this.documents.api;
    const reactor = features.reactors.find(({ name }) => name === of);
    let event: StoredEvent | undefined;
    for await (const stored of this.platform.store.readStream(`run-${runId}`)) {
      if (stored.revision >= revision && reactor?.on.some((type) => type === stored.type) === true) event ??= stored;
    }
    if (event === undefined || reactor === undefined) return null;
    const stored = event;
    const attemptOf = (handle: typeof reactor.handle, failures = 0) =>
      new Step({ ...reactor, handle }, this.platform, stored).attempt({
        failures,
        lastError: null,
        signal: new AbortController().signal,
      });
    return {
      revision: stored.revision,
      attempt: (handle = reactor.handle) => attemptOf(handle),
      handle: reactor.handle,
      /** As after too many attempts. */
      async giveUp(): Promise<void> {
        expect(await attemptOf(reactor.handle, Infinity)).toEqual({ kind: 'done', isGivenUp: true });
      },
      /** As if the worker was killed after its effects, before it recorded what came of them. */
      async diesBeforeItsOutcome(): Promise<void> {
        const dying: typeof reactor.handle = async (...args) => {
          await reactor.handle(...args);
          throw new Error('killed');
        };
        expect(await attemptOf(dying)).toMatchObject({ kind: 'again' });
      },
    };
  }
}
