/** The variables for prompts of agents and for resumable uploads, and the limits that result. */
import type { z } from 'zod';
import { integer } from './variables.ts';

const MIB = 1024 * 1024;

export const featureLimitVariables = {
  PROMPT_TIMEOUT_MS: integer(1_000, 900_000)
    .prefault('45000')
    .describe(
      'Milliseconds that a prompt waits for its answer; then it is 504, and the run continues. Proxies must wait longer: many give up after 50 or 60 seconds.',
    ),
  PUBLIC_PROMPTS_PER_ADDRESS: integer(0, 100_000_000)
    .prefault('20')
    .describe('Prompts without an API key per minute from one address; 0 for no limit.'),
  PUBLIC_PROMPTS_PER_AGENT: integer(1, 100_000_000)
    .prefault('1000')
    .describe('Prompts without an API key that one agent answers on a day, in UTC.'),
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

type Values = z.infer<z.ZodObject<typeof featureLimitVariables>>;
type FeatureLimits = Readonly<ReturnType<typeof featureLimitsOf>>;
export type PromptLimits = Readonly<FeatureLimits['prompts']>;
export type UploadLimits = Readonly<FeatureLimits['uploads']>;

export function featureLimitsOf(values: Values) {
  return {
    prompts: {
      timeoutMs: values.PROMPT_TIMEOUT_MS,
      publicPerAddress: values.PUBLIC_PROMPTS_PER_ADDRESS,
      publicPerAgent: values.PUBLIC_PROMPTS_PER_AGENT,
    },
    uploads: {
      perKey: { count: values.UPLOADS_PER_KEY, bytes: values.UPLOAD_MIB_PER_KEY * MIB },
      perOrganization: { count: values.UPLOADS_PER_ORGANIZATION, bytes: values.UPLOAD_MIB_PER_ORGANIZATION * MIB },
    },
  };
}
