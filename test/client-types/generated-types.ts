/** The files of the client that are generated from the server's own descriptions. */
import { join } from 'node:path';

import { z } from 'zod';

import { clientFrame, serverFrame } from '#libs/features/realtime/index.ts';

import { compactTypes, HELPERS, withPlainComments } from './compact-types.ts';
import { typesOf } from './openapi-typescript.ts';

export interface GeneratedFile {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
}

const FOLDER = join(import.meta.dirname, '../../libs/client/src');

const BANNER = (source: string): string =>
  `/* Made from ${source} by \`npm run client:generate\`: changes in here are lost. A test compares. */\n\n`;

/** @param openApi the document that the running API serves */
export async function generatedTypes(openApi: object): Promise<readonly GeneratedFile[]> {
  return [
    {
      path: join(FOLDER, 'api.generated.ts'),
      text: BANNER("the API's OpenAPI document") + HELPERS + (await typesOf(withShortComments(openApi), compactTypes)),
    },
    {
      path: join(FOLDER, 'frames.generated.ts'),
      text: BANNER('the schemas of the websocket frames') + (await typesOf(framesDocument(), withPlainComments)),
    },
  ];
}

/** The document without descriptions that repeat a summary, and with each example in one line. */
function withShortComments(document: object): object {
  const shorten = (_name: string, value: unknown): unknown => {
    const commented = comments.safeParse(value).data;
    if (commented === undefined) return value;
    const { description, examples, ...others } = commented;
    const lines = examples?.map((example) => (typeof example === 'string' ? example : JSON.stringify(example)));
    return { ...others, ...(description !== others.summary && { description }), ...(lines && { examples: lines }) };
  };
  return z.looseObject({}).parse(JSON.parse(JSON.stringify(document, shorten)));
}

const comments = z.looseObject({
  summary: z.string().optional(),
  description: z.unknown().optional(),
  examples: z.array(z.unknown()).optional(),
});

/** The frames as components of an otherwise empty document. */
function framesDocument(): object {
  const schemas = { ...definitionsOf(serverFrame, 'output'), ...definitionsOf(clientFrame, 'input') };
  return { openapi: '3.1.0', info: { title: 'parley.v1', version: '1' }, paths: {}, components: { schemas } };
}

const withDefinitions = z.looseObject({ $defs: z.record(z.string(), z.unknown()) });

/** `output` is written, `input` is read: in `input`, members with a default are optional. */
function definitionsOf(frame: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const schema = z.toJSONSchema(frame, { io });
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  return withDefinitions.parse(JSON.parse(text)).$defs;
}
