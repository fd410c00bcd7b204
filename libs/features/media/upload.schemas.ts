import { z } from 'zod';

import { idParam, queryInteger, shownTime } from '#libs/platform/http/index.ts';

/** The bytes of a file. */
export const fileBody = z
  .unknown()
  .meta({ type: 'string', format: 'binary', description: 'The file: at most 100 MiB' });

export const uploadParams = z.object({ id: idParam('Id of the upload, and of the media item that it becomes') });

/** `Content-Type` of the parts of a resumable upload. */
export const PART_TYPE = 'application/offset+octet-stream';

const tusResumable = z.string().optional().describe('`1.0.0`');

export const postHeaders = z.object({
  'tus-resumable': tusResumable,
  'upload-length': queryInteger({
    min: 1,
    description: 'Begins a resumable upload of so many bytes: at most 100 MiB',
  }).optional(),
  'upload-metadata': z
    .string()
    .optional()
    .describe('Of a resumable upload: its `filename` is the name of the item if the query has none'),
});

export const patchHeaders = z.object({
  'tus-resumable': tusResumable,
  'upload-offset': queryInteger({ min: 0, description: 'Bytes of the upload that have arrived before' }),
});

export const uploadSchema = z
  .object({
    id: z.string().describe('Id of the upload, and of the media item that it becomes'),
    offset: z.int().describe('Bytes that have arrived; also in `Upload-Offset`'),
    length: z.int().describe('Bytes of the whole file; also in `Upload-Length`'),
    expires_at: shownTime().describe('Time until which the upload can be continued; also in `Upload-Expires`'),
  })
  .meta({ id: 'MediaUpload' });
