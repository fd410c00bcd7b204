/** Pub/sub channel on which changes are announced to every process. Its name is older than changes of anything but keys. */
export const ANNOUNCEMENTS_CHANNEL = 'parley:key-changes:v1';
