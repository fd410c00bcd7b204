/** The error answers as OpenAPI shows them; the shapes are those of errors.ts. */
const errorBody = (description: string) => ({
  type: 'object' as const,
  description,
  required: ['detail'],
  properties: {
    detail: { type: 'string' as const, description: 'For people' },
    code: { type: 'string' as const, description: 'For programs' },
    request_id: { type: 'string' as const },
  },
});

export const ERROR_SCHEMAS = {
  Error: errorBody('Every error but 422'),
  ValidationError: {
    type: 'object' as const,
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: { type: 'array' as const, items: { anyOf: [{ type: 'string' as const }, { type: 'integer' as const }] } },
      msg: { type: 'string' as const },
      type: { type: 'string' as const },
      input: {},
      ctx: { type: 'object' as const },
    },
  },
  HTTPValidationError: {
    type: 'object' as const,
    properties: {
      detail: { type: 'array' as const, items: { $ref: '#/components/schemas/ValidationError' } },
    },
  },
};

const answer = (description: string, schema = 'Error', headers: string[] = []) => ({
  description,
  ...(headers.length > 0 && {
    headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: 'string' as const } }])),
  }),
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
});

export const ERROR_RESPONSES: Readonly<Record<string, ReturnType<typeof answer>>> = {
  400: answer('The request cannot be read, or its head is ambiguous'),
  401: answer('No valid API key', 'Error', ['WWW-Authenticate']),
  403: answer('The API key lacks the scope'),
  404: answer("Absent, or another organization's"),
  409: answer('A conflict with another request'),
  412: answer('`If-Match` does not match'),
  413: answer('The body is too large'),
  415: answer('The body is not plain JSON in UTF-8'),
  422: answer('Validation Error', 'HTTPValidationError'),
  429: answer('Too many requests', 'Error', ['Retry-After']),
  431: answer('The headers are too large'),
  503: answer('A store is unavailable, or not caught up', 'Error', ['Retry-After']),
};

/** Of an operation that answers with an event stream. */
export const NO_STREAM_ACCEPTED = answer('`Accept` does not allow `text/event-stream`');
