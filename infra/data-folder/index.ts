export { copyIdentity, findRunning, openDataFolder, requireDataFolder, type DataFolder } from './data-folder.ts';
export { makeTemporaryFolder } from './temporary-folder.ts';
