/** Announcements of changes to all processes, and what is kept of the log as long as they prove it current. */
export { Announcements, type AnnouncedChange, type ChangeListener } from './announcements.ts';
export { FreshReads, type Reading } from './fresh-reads.ts';
