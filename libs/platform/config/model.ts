/**
 * The variables for the model that agents answer with and for the endpoint that turns texts into vectors, their
 * dependencies, and the configuration that results.
 */
import { z } from 'zod';
import { decimal, endpointProblems, incompleteSet, integer, webUrl } from './variables.ts';

export const modelVariables = {
  MODEL_BASE_URL: webUrl()
    .optional()
    .describe(
      'Model endpoint with the chat completions of the OpenAI API, `https://…/v1`. Default: agents and reports quote their graphs.',
    ),
  MODEL_API_KEY: z.string().optional().meta({ description: 'API key of the model endpoint.', secret: true }),
  MODEL_NAME: z.string().optional().describe('Model of reports, and of agents that name none; with `MODEL_BASE_URL`.'),
  MODEL_PRICE_INPUT: decimal()
    .optional()
    .describe(
      'Price of a million input tokens of `MODEL_NAME`, such as `2.5`, for the `cost` of runs and reports. Default: no cost.',
    ),
  MODEL_PRICE_OUTPUT: decimal()
    .optional()
    .describe('Price of a million output tokens, in the same currency; with `MODEL_PRICE_INPUT`.'),
  MODEL_CONTEXT_TOKENS: integer(500, 10_000_000)
    .prefault('24000')
    .describe(
      'Estimated tokens that a model is given at most; the oldest messages, or the least relevant sources, are dropped.',
    ),
  MODEL_TIMEOUT_MS: integer(100, 170_000)
    .prefault('120000')
    .describe('Milliseconds that one answer of the model may take.'),
  MODEL_FIRST_TOKEN_TIMEOUT_MS: integer(100, 170_000)
    .prefault('60000')
    .describe('Milliseconds within which an answer of the model must begin, with all retries.'),
  MODEL_IDLE_TIMEOUT_MS: integer(100, 170_000)
    .prefault('30000')
    .describe('Milliseconds that an answer of the model may pause.'),
  MODEL_RELEVANCE_TIMEOUT_MS: integer(0, 30_000)
    .prefault('5000')
    .describe(
      'Milliseconds within which the model says whether a message of an `intelligent` channel concerns an agent; then its ' +
        'words decide. 0: they always do.',
    ),
};

/** Variables that other variables require. @param given the variables that are set, valid or not */
export function modelProblems(given: Readonly<Record<string, string>>): string[] {
  const prices = ['MODEL_PRICE_INPUT', 'MODEL_PRICE_OUTPUT'];
  const others = ['MODEL_API_KEY', 'MODEL_NAME', ...prices];
  return [
    ...endpointProblems(given, { url: 'MODEL_BASE_URL', model: 'MODEL_NAME', others }),
    ...incompleteSet(given, prices),
  ];
}

type ModelValues = z.infer<z.ZodObject<typeof modelVariables>>;

/** Converts valid variables; `model` is null without an endpoint. */
export function modelConfigOf(values: ModelValues) {
  const { MODEL_BASE_URL: baseUrl, MODEL_NAME: name, MODEL_API_KEY: apiKey } = values;
  const { MODEL_PRICE_INPUT: input, MODEL_PRICE_OUTPUT: output } = values;
  const prices = input === undefined || output === undefined ? null : { input, output };
  const limits = {
    totalMs: values.MODEL_TIMEOUT_MS,
    firstPartMs: values.MODEL_FIRST_TOKEN_TIMEOUT_MS,
    idleMs: values.MODEL_IDLE_TIMEOUT_MS,
  };
  return {
    model: baseUrl === undefined || name === undefined ? null : { baseUrl, name, apiKey, prices, limits },
    modelContextTokens: values.MODEL_CONTEXT_TOKENS,
    relevance: { timeoutMs: values.MODEL_RELEVANCE_TIMEOUT_MS },
  };
}

/** Blanks at the ends of values are removed, and prefixes end with one: quotation marks keep it. */
const prefix = (what: string, example: string) =>
  z
    .string()
    .transform((value) => /^"([^]*)"$/.exec(value)?.[1] ?? value)
    .optional()
    .describe(
      `Text before ${what} for models that were trained with one, such as ${example} for E5; quotation marks around it keep the blank. Default: none.`,
    );

export const embeddingVariables = {
  EMBEDDING_BASE_URL: webUrl()
    .optional()
    .describe(
      'Endpoint for embeddings in the form of OpenAI, such as `http://127.0.0.1:11434/v1`; search then compares meanings too. Default: words alone.',
    ),
  EMBEDDING_API_KEY: z
    .string()
    .optional()
    .meta({ description: 'Key for `EMBEDDING_BASE_URL`, sent as `Authorization: Bearer`.', secret: true }),
  EMBEDDING_MODEL: z.string().optional().describe('Name of the embedding model; with `EMBEDDING_BASE_URL`.'),
  EMBEDDING_DIMENSIONS: integer(1, 4_096)
    .optional()
    .describe('Length of the vectors to ask for. Default: that of the model.'),
  EMBEDDING_QUERY_PREFIX: prefix('queries', '`"query: "`'),
  EMBEDDING_PASSAGE_PREFIX: prefix('texts of a graph', '`"passage: "`'),
  EMBEDDING_MIN_SIMILARITY: integer(0, 100)
    .prefault('35')
    .describe('Least cosine similarity of a match by meaning, in percent; good values depend on the model.'),
};

export interface EmbeddingConfig {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly model: string;
  /** Null: those of the model. */
  readonly dimensions: number | null;
  /** Texts that are sent before each query, and before each text of a graph. */
  readonly queryPrefix: string;
  readonly passagePrefix: string;
  /** From 0 to 1. */
  readonly minSimilarity: number;
}

/** Variables that other variables require. @param given the variables that are set, valid or not */
export function embeddingProblems(given: Readonly<Record<string, string>>): string[] {
  const others = [
    'EMBEDDING_API_KEY',
    'EMBEDDING_MODEL',
    'EMBEDDING_DIMENSIONS',
    'EMBEDDING_QUERY_PREFIX',
    'EMBEDDING_PASSAGE_PREFIX',
  ];
  return endpointProblems(given, { url: 'EMBEDDING_BASE_URL', model: 'EMBEDDING_MODEL', others });
}

type EmbeddingValues = z.infer<z.ZodObject<typeof embeddingVariables>>;

/** Converts valid variables. Null: no endpoint. */
export function embeddingConfigOf(values: EmbeddingValues): EmbeddingConfig | null {
  const { EMBEDDING_BASE_URL: baseUrl, EMBEDDING_MODEL: model } = values;
  if (baseUrl === undefined || model === undefined) return null;
  return {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    apiKey: values.EMBEDDING_API_KEY ?? null,
    model,
    dimensions: values.EMBEDDING_DIMENSIONS ?? null,
    queryPrefix: values.EMBEDDING_QUERY_PREFIX ?? '',
    passagePrefix: values.EMBEDDING_PASSAGE_PREFIX ?? '',
    minSimilarity: values.EMBEDDING_MIN_SIMILARITY / 100,
  };
}
