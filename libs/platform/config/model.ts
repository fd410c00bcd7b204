/** The variables for the model that agents answer with, their dependencies, and the configuration that results. */
import { z } from 'zod';
import { decimal, endpointProblems, integer, webUrl } from './variables.ts';

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
  const missing = prices.filter((name) => given[name] === undefined);
  return [
    ...endpointProblems(given, { url: 'MODEL_BASE_URL', model: 'MODEL_NAME', others }),
    ...(missing.length === 1 ? [`${prices.find((name) => !missing.includes(name))} needs ${missing[0]} as well`] : []),
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
