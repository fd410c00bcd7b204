import { BoundedPool, TaskError, type TaskOptions } from '#libs/platform/bounded/index.ts';

import type { CleanText, ModelText } from './model-text.ts';

const TIMEOUT_MS = 5_000;
const MEMORY_MIB = 256;
const HEAP_MIB = 192;

/**
 * Cleans the texts of models, see `cleanText`, in processes of bounded memory and time: Markdown that is nested without end
 * takes seconds to read, and documents can have models write it.
 */
export class ModelTexts {
  readonly #pool = new BoundedPool<ModelText, CleanText>({
    script: new URL('./model-text.process.ts', import.meta.url),
    // Each for another organization.
    processes: 2,
    tasksAtOnce: 1,
    timeoutMs: TIMEOUT_MS,
    maxMemoryBytes: MEMORY_MIB * 1024 * 1024,
    maxHeapMib: HEAP_MIB,
    semiSpaceMib: 8,
  });

  /** Null for a text that cannot be read within the limits. @throws the reason of the signal; the error of `close` */
  async clean(text: ModelText, options: TaskOptions): Promise<CleanText | null> {
    try {
      return await this.#pool.run(text, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof TaskError) return null;
      throw error;
    }
  }

  /** Ends the processes. */
  async close(): Promise<void> {
    await this.#pool.close(new Error('Parley is stopping'));
  }
}
