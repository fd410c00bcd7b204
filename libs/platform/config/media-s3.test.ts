import { describe, expect, it } from 'vitest';

import { ConfigError, parseConfig } from './config.ts';
import type { Variables } from './secret-files.ts';
import { describeConfig } from './describe-config.ts';

const MINIO = {
  MEDIA_S3_BUCKET: 'files',
  MEDIA_S3_ENDPOINT: 'http://minio:9000',
  MEDIA_S3_ACCESS_KEY_ID: 'parley',
  MEDIA_S3_SECRET_ACCESS_KEY: 'hunter2',
};

function problemsOf(variables: Variables): readonly string[] {
  try {
    parseConfig(variables);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('configuration of S3', () => {
  it('is a bucket of AWS, with the credentials of the machine', () => {
    expect(parseConfig({ MEDIA_S3_BUCKET: 'files', MEDIA_S3_REGION: 'eu-central-1' }).mediaS3).toEqual({
      bucket: 'files',
      prefix: '',
      endpoint: null,
      region: 'eu-central-1',
      isPathStyle: false,
      credentials: null,
    });
  });

  it('is another store, with a key and a prefix', () => {
    expect(parseConfig({ ...MINIO, MEDIA_S3_PREFIX: 'parley/test' }).mediaS3).toEqual({
      bucket: 'files',
      prefix: 'parley/test/',
      endpoint: 'http://minio:9000',
      region: 'us-east-1',
      isPathStyle: true,
      credentials: { accessKeyId: 'parley', secretAccessKey: 'hunter2' },
    });
    expect(parseConfig({ ...MINIO, MEDIA_S3_PATH_STYLE: 'false' }).mediaS3?.isPathStyle).toBe(false);
  });

  it('names what is missing or wrong', () => {
    expect(problemsOf({ ...MINIO, MEDIA_S3_BUCKET: '' })).toEqual(['MEDIA_S3_ENDPOINT needs MEDIA_S3_BUCKET as well']);
    expect(problemsOf({ ...MINIO, MEDIA_S3_SECRET_ACCESS_KEY: '' })).toEqual([
      'MEDIA_S3_ACCESS_KEY_ID needs MEDIA_S3_SECRET_ACCESS_KEY as well',
    ]);
    expect(problemsOf({ ...MINIO, MEDIA_S3_ENDPOINT: 'minio:9000', MEDIA_S3_PREFIX: '/a//b' })).toEqual([
      'MEDIA_S3_ENDPOINT must be a URL like https://… or http://…',
      'MEDIA_S3_PREFIX must be words of letters, digits, dots and dashes, separated by slashes',
    ]);
  });

  it.each([
    [{ MEDIA_S3_ENDPOINT: 'https://s3.example.com/files' }, /^MEDIA_S3_ENDPOINT must not contain the bucket/],
    [{ MEDIA_S3_ENDPOINT: 'https://s3.example.com/base/files/' }, /^MEDIA_S3_ENDPOINT must not contain the bucket/],
    [
      { MEDIA_S3_ENDPOINT: 'https://files.s3.eu-west-1.amazonaws.com' },
      /^MEDIA_S3_ENDPOINT must not contain the bucket/,
    ],
    [
      { MEDIA_S3_ENDPOINT: 'https://parley:hunter2@s3.example.com' },
      /^MEDIA_S3_ENDPOINT must have no user.*MEDIA_S3_ACCESS_KEY_ID/,
    ],
    [{ MEDIA_S3_ENDPOINT: 'https://s3.example.com?x=1' }, /^MEDIA_S3_ENDPOINT must have no user/],
    [{ MEDIA_S3_PREFIX: 'a/../b' }, /^MEDIA_S3_PREFIX must not contain \. or \.\. as a word/],
    [{ MEDIA_S3_PREFIX: '..' }, /^MEDIA_S3_PREFIX must not/],
    [{ MEDIA_S3_PREFIX: './a' }, /^MEDIA_S3_PREFIX must not/],
    [{ MEDIA_S3_BUCKET: 'files/parley' }, /^MEDIA_S3_BUCKET must be the name of a bucket.*MEDIA_S3_PREFIX/],
    [{ MEDIA_S3_BUCKET: 's3://files' }, /^MEDIA_S3_BUCKET must be the name of a bucket/],
    [{ MEDIA_S3_BUCKET: '..' }, /^MEDIA_S3_BUCKET must be the name of a bucket/],
  ])('refuses %j', (variables, problem) => {
    const problems = problemsOf({ ...MINIO, ...variables });
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join('')).not.toContain('hunter2');
  });

  it.each([
    { MEDIA_S3_ENDPOINT: 'https://x.supabase.co/storage/v1/s3' },
    { MEDIA_S3_ENDPOINT: 'https://files.internal:9000/' },
    { MEDIA_S3_BUCKET: 'arn:aws:s3:eu-west-1:123456789012:accesspoint/files' },
    { MEDIA_S3_PREFIX: 'a..b/.c' },
  ])('takes %j', (variables) => {
    expect(problemsOf({ ...MINIO, ...variables })).toEqual([]);
  });

  it('hides the secret', () => {
    expect(JSON.stringify(describeConfig(MINIO))).not.toContain('hunter2');
  });
});
