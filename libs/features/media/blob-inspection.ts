import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { EntityId } from '#libs/kernel/ids.ts';
import { type Blob, type BlobStore, missingBlob } from '#libs/platform/blobs/index.ts';
import { makeFolder } from '#libs/platform/files/index.ts';

import type { Inspected, InspectionRequest } from './file-inspection.ts';
import type { FileInspector } from './file-inspector.ts';

export interface InspectionTools {
  readonly blobs: Pick<BlobStore, 'withFile'>;
  readonly inspector: Pick<FileInspector, 'inspect'>;
  /** For the files that the inspection writes. */
  readonly temporaryDir: string;
}

type Written = Pick<InspectionRequest, 'previewPath'> & { readonly textPath: string };

/**
 * Inspects a stored file.
 *
 * @param use called with what was found and the paths of the files that were written; they are removed afterwards
 * @throws InspectionError; `Fault` `store_unavailable`; the reason of the signal; the errors of `use`
 */
export async function inspectBlob<Result>(
  file: Blob,
  { blobs, inspector, temporaryDir }: InspectionTools,
  {
    wantsText = false,
    organizationId,
    signal,
  }: { readonly wantsText?: boolean; readonly organizationId: EntityId; readonly signal: AbortSignal },
  use: (found: Inspected, written: Written) => Promise<Result>,
): Promise<Result> {
  // Systems remove temporary folders that were not used for days.
  makeFolder(temporaryDir);
  const folder = await mkdtemp(join(temporaryDir, 'media-'));
  const [previewPath, textPath] = [join(folder, 'preview'), join(folder, 'text')];
  try {
    const found = await blobs.withFile(file, (path) =>
      inspector.inspect(
        { path, previewPath, textPath: wantsText ? textPath : null },
        { group: organizationId, signal },
      ),
    );
    if (found === null) throw missingBlob();
    return await use(found, { previewPath, textPath });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
