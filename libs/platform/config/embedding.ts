/** The variables for an endpoint that turns texts into vectors, and the configuration that results. */
import { z } from 'zod';

import { endpointProblems, integer, webUrl } from './variables.ts';

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
