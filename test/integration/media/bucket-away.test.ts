import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { type S3Server, startS3Server } from '#test/support/s3/s3-server.ts';
import { findS3Server } from '#test/support/s3/versitygw.mjs';

const program = await findS3Server();

describe.skipIf(program === null)('a gateway whose bucket is away', () => {
  let s3: S3Server;
  let api: DocumentsApi;
  let origin: string;
  beforeAll(async () => {
    s3 = await startS3Server(program ?? '');
    api = await DocumentsApi.start({ hasWorker: false, blobsS3: s3.options });
    origin = await api.api.listen();
  }, 120_000);
  afterAll(async () => {
    await api?.stop();
    await s3?.stop();
  });

  const upload = (content: string) =>
    api.call('POST', '/api/v1/media/uploads', Buffer.from(content), { 'content-type': 'application/octet-stream' });
  const open = (address: string) => fetch(new URL(new URL(address).pathname, origin));
  const readiness = async () => {
    const { status, json } = await api.call('GET', '/health/ready');
    return [status, json.checks.blob_store];
  };

  it('answers 503 for files alone, says so, and has them again without a restart', async () => {
    const { json: item } = await upload('before');
    expect(await readiness()).toEqual([200, { status: 'ok', detail: { kind: 's3', answers: true } }]);

    await s3.kill9();
    const refused = await upload('meanwhile');
    expect([refused.status, refused.json.code]).toEqual([503, 'store_unavailable']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const file = await open(item.file_url);
    expect([file.status, await file.json()]).toMatchObject([503, { code: 'store_unavailable' }]);
    // A check is reused for a moment.
    await eventually(async () =>
      expect(await readiness()).toEqual([
        200,
        { status: 'ok', detail: { kind: 's3', answers: false, reason: expect.stringContaining('ECONNREFUSED') } },
      ]),
    );
    expect((await api.call('GET', `/api/v1/media/${item.id}`)).status).toBe(200);
    expect((await api.call('POST', '/api/v1/channels', { name: 'Harbour' })).status).toBe(200);

    await s3.start();
    expect((await upload('after')).status).toBe(200);
    expect(await (await open(item.file_url)).text()).toBe('before');
    await eventually(async () =>
      expect(await readiness()).toEqual([200, { status: 'ok', detail: { kind: 's3', answers: true } }]),
    );
  });
});
