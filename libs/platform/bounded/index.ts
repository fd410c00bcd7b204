/**
 * Child processes that open what others wrote: files, pages, documents. The system bounds their memory and time, so that
 * nothing which a parser does can harm the process that uses the result.
 */
export { BoundedPool } from './bounded-pool.ts';
export type { TaskOptions } from './bounded-pool.ts';
export { TaskError, lacksMemory, serveTasks } from './bounded-task.ts';
