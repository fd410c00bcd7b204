import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import {
  decideDelete,
  decidePut,
  type Document,
  documentCodec,
  type DocumentCreated,
  type DocumentEvent,
  documentFold,
  documentIdOf,
  isSettled,
  statusLabel,
} from './document.ts';
import samples from './document.events.samples.json' with { type: 'json' };

describeStoredEvents('documents', documentCodec, samples);

const hours: DocumentCreated = {
  id: 'document-1',
  knowledgeGraph: 'graph-1',
  name: 'Hours',
  externalId: 'page-7',
  crawlId: null,
  contentType: 'text/plain',
  hash: 'aa',
  bytes: 4,
  url: null,
  data: null,
};
const created: DocumentEvent = { type: 'DocumentCreated.v1', data: hours };
const started: DocumentEvent = { type: 'DocumentIngestionStarted.v1', data: {} };
const ingested: DocumentEvent = {
  type: 'DocumentIngested.v1',
  data: { nodes: 3, edges: 2, passages: 1, isTruncated: false },
};
const failed: DocumentEvent = { type: 'DocumentIngestionFailed.v1', data: { reason: 'the PDF is encrypted' } };
const deleted: DocumentEvent = { type: 'DocumentDeleted.v1', data: {} };
const withdrawn: DocumentEvent = { type: 'DocumentFactsWithdrawn.v1', data: {} };
const changed: DocumentEvent = {
  type: 'DocumentChanged.v1',
  data: { name: 'Hours', contentType: 'text/plain', hash: 'bb', bytes: 5, url: null, data: null },
};
const ORGANIZATION = 'organization-1';

function given(...events: DocumentEvent[]): Document {
  const state = stateAfter(documentFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

const put = (state: Document | null, changes: Partial<DocumentCreated> = {}, organizationId = ORGANIZATION) =>
  decidePut(state, { ...hours, ...changes }, organizationId);
const nothing = { ok: true, events: [] };
const other = { ok: false, rejection: { reason: 'other_document' } };

describe('documents', () => {
  it.each([
    ['Queued', false, [created]],
    ['Processing', false, [created, started]],
    ['Ready', true, [created, started, ingested]],
    ['Failed: the PDF is encrypted', true, [created, started, failed]],
    ['Queued', false, [created, started, ingested, changed]],
    ['Deleted', false, [created, started, ingested, deleted]],
    ['Deleted', true, [created, deleted, withdrawn]],
    ['Queued', false, [created, deleted, withdrawn, created]],
  ])('are %s, settled: %s, after these events', (label, settled, events) => {
    const document = given(...events);
    expect([statusLabel(document), isSettled(document)]).toEqual([label, settled]);
  });

  it('without a graph are ready at once, and have no facts to withdraw', () => {
    const alone: DocumentEvent = { type: 'DocumentCreated.v1', data: { ...hours, knowledgeGraph: null } };
    expect(given(alone)).toMatchObject({ status: 'ready' });
    expect(given(alone, changed)).toMatchObject({ status: 'ready', hash: 'bb' });
    expect(given(alone, deleted)).toMatchObject({ status: 'withdrawn' });
  });

  it('know the revision that their facts come from', () => {
    expect(given(created, started, ingested)).toMatchObject({ contentRevision: 0, changedRevision: 2 });
    expect(given(created, started, changed, started)).toMatchObject({ contentRevision: 2, ingested: null });
    expect(given(created, started, ingested, deleted)).toMatchObject({ contentRevision: 3 });
  });

  it('are created once, and change only with new content', () => {
    expect(put(null)).toEqual({ ok: true, events: [created] });
    expect(put(given(created))).toEqual(nothing);
    expect(put(given(created, started, ingested))).toEqual(nothing);
    expect(put(given(created, started, ingested), { hash: 'bb', bytes: 5 })).toEqual({ ok: true, events: [changed] });
    const renamed = { ...changed.data, hash: 'aa', bytes: 4, name: 'Times' };
    expect(put(given(created), { name: 'Times' })).toEqual({
      ok: true,
      events: [{ type: 'DocumentChanged.v1', data: renamed }],
    });
  });

  it('that failed are ingested again with the same content', () => {
    const again = { ...changed.data, hash: 'aa', bytes: 4 };
    expect(put(given(created, started, failed))).toEqual({
      ok: true,
      events: [{ type: 'DocumentChanged.v1', data: again }],
    });
  });

  it('exist again if they are created after they were deleted', () => {
    expect(put(given(created, deleted))).toEqual({ ok: true, events: [created] });
    expect(put(given(created, deleted, withdrawn))).toEqual({ ok: true, events: [created] });
  });

  it('stay in their graph and organization', () => {
    expect(put(given(created), { knowledgeGraph: 'graph-2' })).toEqual(other);
    expect(put(given(created), {}, 'organization-2')).toEqual(other);
    expect(put(given(created, deleted), {}, 'organization-2')).toEqual(other);
  });

  it('are deleted once', () => {
    expect(decideDelete(given(created))).toEqual({ ok: true, events: [deleted] });
    expect(decideDelete(given(created, deleted))).toEqual(nothing);
  });

  it('have the same id for the same external id of a graph', () => {
    const id = documentIdOf('organization-1', 'graph-1', 'page-7');
    expect(id).toBe('194a0972-298b-5ed6-a94e-9976b113d8b5');
    const others = [
      documentIdOf('organization-2', 'graph-1', 'page-7'),
      documentIdOf('organization-1', 'graph-2', 'page-7'),
      documentIdOf('organization-1', 'graph-1', 'page-8'),
      documentIdOf('organization-1', 'graph-1page', '-7'),
    ];
    expect(others).not.toContain(id);
    expect(new Set(others).size).toBe(4);
  });
});
