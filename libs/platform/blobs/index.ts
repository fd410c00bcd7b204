/** Contents that are too large for events: files. */
export { missingBlob } from './blob-faults.ts';
export { BlobTooLarge } from './blob-store.ts';
export type { Blob, BlobStore, ByteRange } from './blob-store.ts';
export { rereading } from './checked-content.ts';
export { folderBlobStore } from './blob-store.folder.ts';
export { s3BlobStore } from './blob-store.s3.ts';
export type { S3Options } from './s3-client.ts';
