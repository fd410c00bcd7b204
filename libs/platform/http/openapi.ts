/** The OpenAPI document, made from the zod schemas of the routes. */
import type { RequestListener } from 'node:http';
import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import { JSON_TYPE } from './errors.ts';
import { openApi30 } from './openapi-30.ts';
import {
  ERROR_RESPONSES,
  ERROR_SCHEMAS,
  NAMED_RESPONSES,
  withDiscriminators,
  JsonSchemas,
  type JsonSchema,
} from './openapi-schemas.ts';
import type { HttpApp, HttpServerOptions } from './server-options.ts';

declare module 'fastify' {
  /** Details of a route for the document, besides its schemas. */
  interface FastifySchema {
    /** Leaves the route out of the document. */
    hide?: boolean;
    operationId?: string;
    summary?: string;
    description?: string;
    tags?: readonly string[];
    /** Content types of the body. Default: JSON. */
    consumes?: readonly string[];
  }
}

const SECURITY = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'An API key: `<key>`, `Bearer <key>` or `Token <key>`',
  },
};
const INFO = {
  license: { name: 'Not licensed for redistribution', identifier: 'LicenseRef-Parley' },
  contact: { name: 'The operator of this server' },
};
const EVENT_STREAM = 'text/event-stream';

/** The schema of a response with the bytes of a file. */
export const downloadedFile = z.unknown().meta({ type: 'string', format: 'binary' });

/** Serves the routes that are declared afterwards at `/openapi.json`, and in the form of OpenAPI 3.0. The first request makes a document. */
export function registerOpenApi(app: HttpApp, info: HttpServerOptions['info']): void {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && route.schema !== undefined && route.schema.hide !== true) routes.push(route);
  });
  const serve = (path: string, make: () => unknown): void => {
    let document: string | undefined;
    app.get(path, { config: { public: true }, schema: { hide: true } }, (request, reply) => {
      document ??= JSON.stringify(make());
      const url = app.publicAddress.pathOf(request.raw, '') || '/';
      void reply.type(JSON_TYPE).send(`{"servers":${JSON.stringify([{ url }])},${document.slice(1)}`);
    });
  };
  serve('/openapi.json', () => openApiDocument(info, routes));
  serve('/openapi-3.0.json', () => openApi30(openApiDocument(info, routes)));
}

function openApiDocument(info: HttpServerOptions['info'], routes: readonly RouteOptions[]): object {
  const { tags: described = {}, ...own } = info;
  const schemas = new JsonSchemas('draft-2020-12', 'Input');
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const operations = (paths[route.url.replaceAll(/:(\w+)/g, '{$1}')] ??= {});
    for (const method of [route.method].flat()) operations[method.toLowerCase()] = operationOf(route, method, schemas);
  }
  const tags = new Set(routes.flatMap(({ schema }) => schema?.tags ?? []));
  const components = { ...ERROR_SCHEMAS, ...schemas.components() };
  return withDiscriminators(
    {
      openapi: '3.1.0',
      info: { ...INFO, ...own },
      tags: [...tags].map((name) => ({ name, description: described[name] ?? name })),
      security: [{ ApiKey: [] }],
      paths,
      components: {
        securitySchemes: SECURITY,
        responses: NAMED_RESPONSES,
        parameters: PARAMETERS,
        headers: HEADERS,
        schemas: components,
      },
    },
    components,
  ) as object;
}

function operationOf({ schema = {}, config }: RouteOptions, method: string, schemas: JsonSchemas): object {
  const { operationId, summary, description, tags, consumes } = schema;
  const isPublic = Boolean(config?.public);
  const hasCommonHeaders = !isPublic && config?.ignoresIdempotencyKey !== true;
  return {
    operationId,
    summary,
    description: description ?? summary,
    tags,
    parameters: [
      ...parametersOf(schema.querystring, 'query', schemas),
      ...parametersOf(schema.params, 'path', schemas),
      ...parametersOf(schema.headers, 'header', schemas),
      ...(hasCommonHeaders ? headersOf(method) : []),
    ],
    ...(isZod(schema.body) && { requestBody: bodyOf(schema.body, consumes, schemas) }),
    ...(isPublic && { security: [] }),
    ...(config?.scope !== undefined && !isPublic && { 'x-required-scope': config.scope }),
    ...(config?.members !== undefined && { 'x-open-to-members': true }),
    ...(config?.ignoresIdempotencyKey === true && { 'x-ignores-idempotency-key': true }),
    responses: responsesOf(schema.response, { isPublic, method }, schemas),
  };
}

function isZod(schema: unknown): schema is z.ZodType {
  return schema instanceof z.ZodType;
}

function parametersOf(schema: unknown, place: 'query' | 'path' | 'header', schemas: JsonSchemas): object[] {
  if (!isZod(schema)) return [];
  const { properties = {}, required = [] } = objectSchema.parse(schemas.of(schema, 'sent'));
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    in: place,
    name,
    required: required.includes(name),
    description,
    deprecated: property['deprecated'],
    schema: property,
  }));
}

const objectSchema = z.object({
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
  required: z.array(z.string()).optional(),
});

function bodyOf(
  body: z.ZodType,
  consumes: readonly string[] = ['application/json'],
  schemas: JsonSchemas,
): { required: boolean; description?: unknown; content: object } {
  const schema = schemas.of(body, 'sent');
  return {
    required: !body.safeParse(undefined).success,
    description: schema['description'],
    content: Object.fromEntries(consumes.map((type) => [type, { schema }])),
  };
}

/** A response is a schema of JSON, null without content, or a description with a schema for each content type. */
const response = z.union([
  z.instanceof(z.ZodType),
  z.object({ description: z.string(), content: z.record(z.string(), z.object({ schema: z.instanceof(z.ZodType) })) }),
]);

function responsesOf(
  declared: unknown,
  { isPublic, method }: { readonly isPublic: boolean; readonly method: string },
  schemas: JsonSchemas,
): object {
  const own = z.record(z.string(), response).parse(declared ?? {});
  const names = isPublic ? ['X-Request-Id'] : method === 'GET' ? READ_HEADERS : COMMAND_HEADERS;
  const headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  const described = Object.entries(own).map(
    ([status, one]) => [status, { ...responseOf(one, schemas), headers }] as const,
  );
  const streams = described.some(([, { content }]) => content !== undefined && EVENT_STREAM in content);
  const errors = Object.entries({ ...ERROR_RESPONSES, ...(streams && { 406: 'NotAcceptable' }) })
    .filter(([status]) => !isPublic || !['401', '403'].includes(status))
    .map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]);
  return Object.fromEntries([...errors, ...described]);
}

interface ResponseObject {
  readonly description: string;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

function responseOf(declared: z.infer<typeof response>, schemas: JsonSchemas): ResponseObject {
  if (declared instanceof z.ZodNull) return { description: declared.description ?? '' };
  if (!(declared instanceof z.ZodType)) {
    const content = Object.entries(declared.content).map(([type, { schema }]) => [
      type,
      { schema: schemas.of(schema, 'received') },
    ]);
    return { description: declared.description, content: Object.fromEntries(content) };
  }
  const { description, ...schema } = schemas.of(declared, 'received');
  return {
    description: typeof description === 'string' ? description : 'Successful Response',
    content: { 'application/json': { schema } },
  };
}

const headerOf = (description: string) => ({ description, schema: { type: 'string' } });
const HEADERS = {
  'X-Request-Id': headerOf('Id of the request in the log'),
  ETag: headerOf('Revision of the entity, if it has one'),
  'Parley-Position': headerOf('Position of the change, for reads that must include it'),
  'Idempotency-Replayed': headerOf('`true` for the response to an earlier request with the same `Idempotency-Key`'),
};
const READ_HEADERS: readonly (keyof typeof HEADERS)[] = ['X-Request-Id', 'ETag'];
const COMMAND_HEADERS = Object.keys(HEADERS);

const parameterOf = (name: string, description: string, maxLength = 2048) => ({
  in: 'header',
  name,
  required: false,
  description,
  schema: { type: 'string', minLength: 1, maxLength },
});
/** Headers that requests of every route may have. Operations refer to them. */
const PARAMETERS = {
  ParleyPosition: parameterOf('Parley-Position', 'Waits up to two seconds until the read models include this position'),
  IfNoneMatch: parameterOf('If-None-Match', 'Answers 304 if it contains the `ETag` of the entity'),
  IdempotencyKey: parameterOf('Idempotency-Key', 'Repetitions within 24 hours return the first response', 255),
  IfMatch: parameterOf('If-Match', 'Only changes the entity with this `ETag`, otherwise 412'),
};

function headersOf(method: string): object[] {
  const refer = (...names: (keyof typeof PARAMETERS)[]): object[] =>
    names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
  if (method === 'GET') return refer('ParleyPosition', 'IfNoneMatch');
  return method === 'POST' || method === 'PATCH' ? refer('IdempotencyKey', 'IfMatch') : refer('IfMatch');
}

const PREFIX = '/docs';

/**
 * Serves the reference page at `/docs`, with its script. The first request loads the page, which blocks the process for
 * a quarter of a second; loading it at the start would cost that in every process.
 */
export function registerDocumentation(app: HttpApp, title: string): void {
  let page: Promise<RequestListener> | undefined;
  // Relative, so that it is right below any prefix.
  app.get(PREFIX, (_request, reply) => reply.redirect('docs/', 301));
  for (const path of ['/', '/js/scalar.js']) {
    app.get(`${PREFIX}${path}`, async (request, reply) => {
      page ??= import('./documentation-page.ts').then(({ documentationPage }) => documentationPage(PREFIX, title));
      const serve = await page;
      reply.hijack();
      // The page parses the address of the request, and names none.
      request.raw.headers.host = 'localhost';
      serve(request.raw, reply.raw);
    });
  }
}
