/** Pub/sub channel on which changes of keys are announced to every process. */
export const KEY_CHANGES_CHANNEL = 'parley:key-changes:v1';
