/** The variables for a store of files that speaks S3. */
import { z } from 'zod';

import { boolean, incompleteSet, url } from './variables.ts';

const KEY_PREFIX = /^[\w.-]+(\/[\w.-]+)*$/;
/** Proxies and clients resolve these in paths. */
const DOTS = /(^|\/)\.\.?(\/|$)/;
/** Also of an access point. */
const BUCKET = /^(arn:[\w:./-]+|\w[\w.-]*)$/;

export const mediaS3Variables = {
  MEDIA_S3_BUCKET: z
    .string()
    .refine(
      (value) => BUCKET.test(value),
      'must be the name of a bucket, without an address and a folder: these are MEDIA_S3_ENDPOINT and MEDIA_S3_PREFIX',
    )
    .optional()
    .describe('Bucket of an S3-compatible store for the files of media. Default: a folder in `DATA_DIR`.'),
  MEDIA_S3_ENDPOINT: url('https:', 'http:')
    .refine(
      (value) => !/[?#@]/.test(value),
      'must have no user, query or fragment: the key is MEDIA_S3_ACCESS_KEY_ID and MEDIA_S3_SECRET_ACCESS_KEY',
    )
    .optional()
    .describe('Address of that store, `https://…`. Default: that of AWS in the region.'),
  MEDIA_S3_REGION: z.string().prefault('us-east-1').describe('Region of the bucket.'),
  MEDIA_S3_ACCESS_KEY_ID: z
    .string()
    .optional()
    .describe('Access key for the bucket. Default: what the AWS SDK finds, such as the role of the pod.'),
  MEDIA_S3_SECRET_ACCESS_KEY: z
    .string()
    .optional()
    .meta({ description: 'Secret of `MEDIA_S3_ACCESS_KEY_ID`.', secret: true }),
  MEDIA_S3_PREFIX: z
    .string()
    .refine(
      (value) => KEY_PREFIX.test(value),
      'must be words of letters, digits, dots and dashes, separated by slashes',
    )
    .refine((value) => !DOTS.test(value), 'must not contain . or .. as a word: they are resolved on the way')
    .optional()
    .describe('Folder in the bucket; unique for each Parley. Default: the bucket itself.'),
  MEDIA_S3_PATH_STYLE: boolean()
    .optional()
    .describe('Whether the bucket is in the path of addresses. Default: with `MEDIA_S3_ENDPOINT`.'),
};

const NEEDS_BUCKET = Object.keys(mediaS3Variables).filter((name) => name !== 'MEDIA_S3_BUCKET');
const PAIR = ['MEDIA_S3_ACCESS_KEY_ID', 'MEDIA_S3_SECRET_ACCESS_KEY'] as const;

/** Variables that other variables require. @param given the variables that are set, valid or not */
export function mediaS3Problems(given: Readonly<Record<string, string>>): string[] {
  const isSet = (name: string): boolean => given[name] !== undefined;
  const first = NEEDS_BUCKET.find(isSet);
  if (first !== undefined && !isSet('MEDIA_S3_BUCKET')) return [`${first} needs MEDIA_S3_BUCKET as well`];
  const incomplete = incompleteSet(given, PAIR);
  if (incomplete.length > 0) return incomplete;
  return hasBucket(given['MEDIA_S3_ENDPOINT'] ?? '', given['MEDIA_S3_BUCKET'] ?? '')
    ? ['MEDIA_S3_ENDPOINT must not contain the bucket: MEDIA_S3_BUCKET is added to it']
    : [];
}

/** Whether the bucket is in the address already. It would be added again, and its files would be in a folder of it. */
function hasBucket(endpoint: string, bucket: string): boolean {
  const url = URL.parse(endpoint);
  if (url === null || bucket === '') return false;
  const isInHost = url.hostname.startsWith(`${bucket}.s3.`) || url.hostname.startsWith(`${bucket}.s3-`);
  return isInHost || url.pathname.split('/').includes(bucket);
}

type Values = z.infer<z.ZodObject<typeof mediaS3Variables>>;

/** As the store of files takes it; null: files are in a folder. */
export function mediaS3Of(values: Values) {
  const { MEDIA_S3_BUCKET: bucket, MEDIA_S3_PREFIX: prefix, MEDIA_S3_ENDPOINT: endpoint = null } = values;
  const { MEDIA_S3_ACCESS_KEY_ID: accessKeyId, MEDIA_S3_SECRET_ACCESS_KEY: secretAccessKey } = values;
  if (bucket === undefined) return null;
  return {
    bucket,
    prefix: prefix === undefined ? '' : `${prefix}/`,
    endpoint,
    region: values.MEDIA_S3_REGION,
    isPathStyle: values.MEDIA_S3_PATH_STYLE ?? endpoint !== null,
    credentials: accessKeyId === undefined || secretAccessKey === undefined ? null : { accessKeyId, secretAccessKey },
  };
}
