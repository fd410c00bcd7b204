/** Imports: conversations from elsewhere become channels; a channel goes out as JSON lines. */
export { exportChannel } from './export-channel.ts';
export { ImportTarget } from './import-target.ts';
export type { ImportParts } from './import-target.ts';
export { BadInput, FORMATS } from './import.model.ts';
export type { ImportFormat, ImportSource, Problem } from './import.model.ts';
export { openSource } from './open-source.ts';
export { Patience } from './patience.ts';
export { ProgressFile } from './progress-file.ts';
export { NOTHING_YET, runImport } from './run-import.ts';
export type { ImportCounts, ImportProgress } from './run-import.ts';
