import { availableParallelism } from 'node:os';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundedPool, TaskError, type TaskOptions } from '#libs/platform/bounded/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type Blob, type BlobStore, missingBlob } from '#libs/platform/blobs/index.ts';
import { makeFolder } from '#libs/platform/files/index.ts';
import { type Inspected, InspectionError, type InspectionRequest } from './file-inspection.ts';
import type { FileType } from './media.ts';

interface InspectionLimits {
  readonly timeoutMs: number;
  readonly maxMemoryBytes: number;
  readonly tasksAtOnce: number;
  readonly maxProcessorSeconds: number;
}

/** Opens files in processes whose memory and time are bounded: see `BoundedPool`. */
export class FileInspector {
  readonly #pool: BoundedPool<InspectionRequest, Inspected>;
  readonly #timeoutMs: number;

  constructor({ timeoutMs = 20_000, ...limits }: Partial<InspectionLimits> = {}) {
    this.#timeoutMs = timeoutMs;
    this.#pool = new BoundedPool({
      script: new URL('./inspect.process.ts', import.meta.url),
      // A process for each of two organizations: their files cannot harm each other.
      processes: 2,
      tasksAtOnce: Math.min(availableParallelism(), 4),
      timeoutMs,
      // Less than 512 MiB together with a worker.
      maxMemoryBytes: 224 * 1024 * 1024,
      maxHeapMib: 128,
      semiSpaceMib: 2,
      ...limits,
    });
  }

  get pids(): readonly number[] {
    return this.#pool.pids;
  }

  /** @throws InspectionError; the reason of `signal`, after which the files are not used any longer */
  async inspect(request: InspectionRequest, options: Pick<TaskOptions, 'group' | 'signal'>): Promise<Inspected> {
    try {
      return await this.#pool.run(request, options);
    } catch (error) {
      if (!(error instanceof TaskError)) throw error;
      // Written by `inspect.process.ts`.
      throw new InspectionError(this.#reasonOf(error), error.detail as FileType | null);
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #reasonOf({ kind, message }: TaskError): string {
    switch (kind) {
      case 'refused':
        return message;
      case 'failed':
        return 'the file is damaged';
      case 'timeout':
        return `processing it takes longer than ${this.#timeoutMs / 1_000} s`;
      case 'memory':
        return 'processing it takes too much memory';
      case 'died':
        return 'processing it takes too much memory, or fails';
      case 'stopped':
        return 'processing it was stopped';
    }
  }
}

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
