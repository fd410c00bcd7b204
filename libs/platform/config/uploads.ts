/** The variables for resumable uploads, and the limits that result. */
import type { z } from 'zod';
import { integer } from './variables.ts';

const MIB = 1024 * 1024;

export const uploadVariables = {
  UPLOADS_PER_KEY: integer(1, 100_000)
    .prefault('100')
    .describe('Resumable uploads of one API key that are not complete; further ones are 429.'),
  UPLOADS_PER_ORGANIZATION: integer(1, 100_000)
    .prefault('1000')
    .describe('Resumable uploads of one organization that are not complete.'),
  UPLOAD_MIB_PER_KEY: integer(1, 100_000_000)
    .prefault('2048')
    .describe('Declared size of the resumable uploads of one API key that are not complete, in MiB.'),
  UPLOAD_MIB_PER_ORGANIZATION: integer(1, 100_000_000)
    .prefault('10240')
    .describe('Declared size of the resumable uploads of one organization that are not complete, in MiB.'),
};

type UploadValues = { readonly [Name in keyof typeof uploadVariables]: z.output<(typeof uploadVariables)[Name]> };

/** Of resumable uploads that are not complete. */
export interface UploadLimits {
  readonly perKey: { readonly count: number; readonly bytes: number };
  readonly perOrganization: { readonly count: number; readonly bytes: number };
}

export function uploadConfigOf(values: UploadValues): { readonly uploads: UploadLimits } {
  return {
    uploads: {
      perKey: { count: values.UPLOADS_PER_KEY, bytes: values.UPLOAD_MIB_PER_KEY * MIB },
      perOrganization: {
        count: values.UPLOADS_PER_ORGANIZATION,
        bytes: values.UPLOAD_MIB_PER_ORGANIZATION * MIB,
      },
    },
  };
}
