import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { fileTypeOf, hasPreview } from './file-types.ts';
import samples from './media.events.samples.json' with { type: 'json' };
import {
  decideDelete,
  isProcessed,
  isSettled,
  type Media,
  mediaCodec,
  type MediaCreated,
  type MediaEvent,
  mediaFold,
  statusLabel,
} from './media.ts';
import { mediaEntity } from './media.read.ts';

const { resource } = mediaEntity;

describeStoredEvents('media items', mediaCodec, samples);

const blob = { hash: 'a'.repeat(64), bytes: 9 };
const png = { mimeType: 'image/png', format: 'png', resourceType: 'image' };
const preview = { ...blob, mimeType: 'image/webp', width: 4, height: 2 };

function given(...events: MediaEvent[]): Media {
  const state = stateAfter(mediaFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}
function created(values: Partial<MediaCreated>): MediaEvent {
  const none = { sourceUrl: null, file: null, knowledgeGraph: null, channel: null, message: null, description: null };
  return { type: 'MediaCreated.v1', data: { id: 'm', name: 'a.png', ...none, ...values } };
}
const uploaded = created({ file: blob });
const started: MediaEvent = { type: 'MediaProcessingStarted.v1', data: {} };
const processed: MediaEvent = {
  type: 'MediaProcessed.v1',
  data: { file: blob, type: png, width: 40, height: 20, pages: null, durationMs: null, preview },
};
const failed: MediaEvent = {
  type: 'MediaFailed.v1',
  data: { reason: 'the file is damaged', file: blob, type: png },
};
const deleted: MediaEvent = { type: 'MediaDeleted.v1', data: {} };

describe('media items', () => {
  it('wait for a file only if they have one', () => {
    expect(statusLabel(given(created({})))).toBe('Ready');
    for (const item of [uploaded, created({ sourceUrl: 'https://example.org/a' })]) {
      expect([statusLabel(given(item)), isSettled(given(item))]).toEqual(['Queued', false]);
    }
  });

  it('are measured, or fail with the reason, and keep their file', () => {
    expect([statusLabel(given(uploaded, started)), isSettled(given(uploaded, started))]).toEqual(['Processing', false]);
    expect(given(uploaded, started).startRevision).toBe(1);
    const ready = given(created({ sourceUrl: 'https://example.org/a' }), started, processed);
    expect(resource(ready)).toMatchObject({
      status: 'Ready',
      format: 'png',
      resource_type: 'image',
      mime_type: 'image/png',
      bytes: 9,
      width: 40,
      height: 20,
      url: '',
      file_url: '',
    });
    const broken = given(uploaded, started, failed);
    expect(isSettled(broken)).toBe(true);
    expect(resource(broken)).toMatchObject({ status: 'Failed: the file is damaged', url: null, file_url: '' });
  });

  it('are given to their graph and channel once they are processed, and keep their file if these refuse it', () => {
    const named = [created({ file: blob, channel: 'c', knowledgeGraph: 'g' }), started, processed] as const;
    expect([statusLabel(given(...named)), isProcessed(given(...named)), isSettled(given(...named))]).toEqual([
      'Processing',
      true,
      false,
    ]);
    const data = { documentId: 'd', interactionId: 'i', problem: null };
    const ready = given(...named, { type: 'MediaDelivered.v1', data });
    expect(resource(ready)).toMatchObject({ status: 'Ready', document_id: 'd', interaction_id: 'i' });
    const problem = 'it was not posted: the channel is archived';
    const failure: MediaEvent = { type: 'MediaDelivered.v1', data: { ...data, interactionId: null, problem } };
    expect(resource(given(...named, failure))).toMatchObject({ status: `Failed: ${problem}`, width: 40, file_url: '' });
    expect(isSettled(given(...named, deleted))).toBe(false);
    const removed: MediaEvent = { type: 'MediaDocumentRemoved.v1', data: {} };
    expect(isSettled(given(...named, deleted, removed))).toBe(false);
    expect(isSettled(given(...named, deleted, removed, { type: 'MediaDeletionNoted.v1', data: {} }))).toBe(true);
  });

  it('are deleted once', () => {
    expect(decideDelete(given(uploaded))).toEqual({ ok: true, events: [deleted] });
    expect(decideDelete(given(uploaded, deleted))).toEqual({ ok: true, events: [] });
    expect(isSettled(given(uploaded, deleted))).toBe(true);
  });

  it('are listed by creator, channel, organization, kind, format and graph', () => {
    const item = given(created({ file: blob, channel: 'c', knowledgeGraph: 'g' }), started, processed);
    expect(mediaEntity.facets(item)).toEqual({
      twin: item.creator.id,
      community: 'c',
      organization: item.organizationId,
      resource_type: 'image',
      format: 'png',
      knowledge_graph: 'g',
    });
  });
});

describe('the type of a file', () => {
  const typeOf = (start: string | Uint8Array, detected?: { mime: string; ext: string }) =>
    fileTypeOf(detected, Buffer.from(start));

  it.each([
    ['plain text', 'text/plain'],
    [Buffer.from('Caf\u00e9', 'latin1'), 'text/plain'],
    [Buffer.from('\ufeffCaf\u00e9', 'utf16le'), 'text/plain'],
    ['<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg">', 'image/svg+xml'],
    ['<!-- a --> <SVG>', 'image/svg+xml'],
    ['  <!DOCTYPE html>', 'text/html'],
    ['text <script>alert(1)</script>', 'text/plain'],
    ['# SVG\n\nAn image begins with <svg width="1">, and a page with <title>.', 'text/plain'],
    ['<script>alert(1)</script>', 'text/html'],
    ['<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">\n<html>', 'text/html'],
    ['<?xml version="1.0"?><!-- a --><svg:svg xmlns:svg="x">', 'image/svg+xml'],
    ['\ufeff \n%PDF-1.4', 'application/pdf'],
    ['A file begins with %PDF-1.4', 'text/plain'],
    ['<?xml version="1.0"?><note/>', 'application/xml'],
    ['\u0000\u0001', 'application/octet-stream'],
    ['', 'application/octet-stream'],
  ])('of %j is %s', (start, mimeType) => {
    expect(typeOf(start).mimeType).toBe(mimeType);
  });

  it('is that of its signature, and only images of some types get previews', () => {
    expect(typeOf('GIF89a=1', { mime: 'image/gif', ext: 'gif' })).toEqual({
      mimeType: 'image/gif',
      format: 'gif',
      resourceType: 'image',
    });
    const xml = { mime: 'application/xml', ext: 'xml' };
    expect(hasPreview(typeOf('<?xml version="1.0"?><svg>', xml))).toBe(false);
    expect(hasPreview(png)).toBe(true);
    expect(typeOf('%PDF-1.7', { mime: 'application/pdf', ext: 'pdf' }).resourceType).toBe('document');
    expect(typeOf('PK', { mime: 'application/zip', ext: 'zip' }).resourceType).toBe('archive');
  });
});
