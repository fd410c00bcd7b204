import type { RequestListener } from 'node:http';
import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { z } from 'zod';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { JSON_TYPE } from './errors.ts';
import { ERROR_RESPONSES, ERROR_SCHEMAS, NO_STREAM_ACCEPTED, withDiscriminators } from './openapi-schemas.ts';
import type { HttpApp, HttpServerOptions } from './server-options.ts';
import { SHOWN_DEFAULT } from './validation/schemas.ts';

type Transform = NonNullable<FastifyDynamicSwaggerOptions['transform']>;
type TransformObject = NonNullable<FastifyDynamicSwaggerOptions['transformObject']>;
type Document = Extract<ReturnType<TransformObject>, { components?: { pathItems?: unknown } }>;
type Operation = NonNullable<NonNullable<NonNullable<Document['paths']>[string]>['get']>;

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** Collects the routes declared afterwards. {@link openApiRoute} serves the document. */
export async function registerOpenApi(app: HttpApp, info: HttpServerOptions['info']): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { ...info },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          ApiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'Authorization',
            description: 'An API key: `<key>`, `Bearer <key>` or `Token <key>`',
          },
        },
        schemas: ERROR_SCHEMAS,
      },
      security: [{ ApiKey: [] }],
    },
    transform: describeRoute,
    transformObject: (document) => completed(jsonSchemaTransformObject(document)),
  });
}

/** Serves `/openapi.json`. Must be registered after all routes. */
export function openApiRoute(app: HttpApp): void {
  let document: Buffer | undefined;
  app.get('/openapi.json', { config: { public: true }, schema: { hide: true } }, (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(tidied(app.swagger())));
    void reply.type(JSON_TYPE).send(document);
  });
}

/** Removes redundant parts of zod's JSON Schema, then unused schemas. */
function tidied(document: object): object {
  const plain: unknown = JSON.parse(JSON.stringify(document), (key, value: unknown) => {
    if (key === 'additionalProperties' && value === false) return undefined;
    if ((key === 'maximum' || key === 'minimum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER)
      return undefined;
    if (typeof value === 'object' && value !== null && SHOWN_DEFAULT in value) {
      const { [SHOWN_DEFAULT]: fallback, ...others } = value;
      return { ...others, default: fallback };
    }
    return key === 'propertyNames' && JSON.stringify(value) === '{"type":"string"}' ? undefined : value;
  });
  const { components, ...rest } = withSchemas.parse(plain);
  const schemas = reachable(rest, components.schemas);
  return z.looseObject({}).parse(withDiscriminators({ ...rest, components: { ...components, schemas } }, schemas));
}

/** The schemas that `from` refers to, also through other schemas; in the order of `schemas`. */
function reachable(from: object, schemas: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const reached = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (reached.has(name) || !(name in schemas)) continue;
      reached.add(name);
      follow(schemas[name]);
    }
  };
  follow(from);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => reached.has(name)));
}

const withSchemas = z.looseObject({
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
});

const EVENT_STREAM = 'text/event-stream';
const IGNORES_KEY = 'x-ignores-idempotency-key';

const describeRoute: Transform = (route) => {
  const { schema, url } = jsonSchemaTransform(route);
  const { config } = route.route;
  if (config?.public) return { schema: { ...schema, security: [] }, url };
  const facts = {
    ...(config?.scope !== undefined && { 'x-required-scope': config.scope }),
    ...(config?.ignoresIdempotencyKey && { [IGNORES_KEY]: true }),
  };
  return { schema: { ...schema, ...facts }, url };
};

/** Adds to every operation what all have in common. */
function completed(document: ReturnType<TransformObject>): ReturnType<TransformObject> {
  if (!isOpenApi31(document)) return document;
  for (const item of Object.values(document.paths ?? {})) {
    for (const method of METHODS) {
      const operation = item?.[method];
      if (operation) completeOperation(operation, method);
    }
  }
  return document;
}

function isOpenApi31(document: ReturnType<TransformObject>): document is Document {
  return 'openapi' in document && document.openapi?.startsWith('3.1') === true;
}

function completeOperation(operation: Operation, method: (typeof METHODS)[number]): void {
  const isPublic = operation.security?.length === 0;
  const skipped = new Set(isPublic ? ['401', '403'] : []);
  operation.responses ??= {};
  for (const [status, response] of Object.entries(ERROR_RESPONSES)) {
    if (!skipped.has(status)) operation.responses[status] ??= response;
  }
  for (const parameter of operation.parameters ?? []) {
    if ('schema' in parameter && parameter.schema && 'deprecated' in parameter.schema && parameter.schema.deprecated) {
      parameter.deprecated = true;
    }
  }
  const ok = operation.responses['200'];
  if (ok && 'description' in ok && ok.description === 'Default Response') ok.description = 'Successful Response';
  if (ok && 'content' in ok && ok.content && EVENT_STREAM in ok.content)
    operation.responses['406'] = NO_STREAM_ACCEPTED;
  if (operation.requestBody && 'content' in operation.requestBody) operation.requestBody.required = true;
  if (isPublic || IGNORES_KEY in operation) return;
  operation.parameters = [...(operation.parameters ?? []), ...headersOf(method)];
}

function headersOf(method: (typeof METHODS)[number]): NonNullable<Operation['parameters']> {
  const header = (name: string, description: string, maxLength: number) => ({
    in: 'header' as const,
    name,
    required: false,
    description,
    schema: { type: 'string' as const, minLength: 1, maxLength },
  });
  if (method === 'get') {
    return [header('Parley-Position', 'Waits up to two seconds until the read models include this position', 2048)];
  }
  if (method !== 'post' && method !== 'patch') return [];
  return [header('Idempotency-Key', 'Repetitions within 24 hours return the first response', 255)];
}

const PREFIX = '/docs';

/**
 * Serves the reference page at `/docs`, with its script. The first request loads the page, which blocks the process for
 * a quarter of a second; loading it at the start would cost that in every process.
 */
export function registerDocumentation(app: HttpApp, title: string): void {
  let page: Promise<RequestListener> | undefined;
  for (const path of ['', '/', '/js/scalar.js']) {
    app.get(`${PREFIX}${path}`, async (request, reply) => {
      page ??= import('./documentation-page.ts').then(({ documentationPage }) => documentationPage(PREFIX, title));
      const serve = await page;
      reply.hijack();
      serve(request.raw, reply.raw);
    });
  }
}
