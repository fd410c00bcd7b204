export {
  copyIdentity,
  DATA_FORMAT,
  findRunning,
  openDataFolder,
  requireDataFolder,
  type DataFolder,
} from './data-folder.ts';
export { type RunFile } from './run-file.ts';
export { makeTemporaryFolder, type TemporaryFolder } from './temporary-folder.ts';
