export { copyIdentity, findRunning, openDataFolder, requireDataFolder, type DataFolder } from './data-folder.ts';
export { type RunFile } from './run-file.ts';
export { makeTemporaryFolder } from './temporary-folder.ts';
