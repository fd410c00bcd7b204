/** The files of the client that are generated from the server's own descriptions. */
import { join } from 'node:path';

import { z } from 'zod';

import { clientFrame, serverFrame } from '#libs/features/realtime/index.ts';

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
      text: BANNER("the API's OpenAPI document") + (await typesOf(openApi)),
    },
    {
      path: join(FOLDER, 'frames.generated.ts'),
      text: BANNER('the schemas of the websocket frames') + (await typesOf(framesDocument())),
    },
  ];
}

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
