/** Language models: the port, its adapter for endpoints, and how much of a conversation a model is given. */
export { boundedHistory, estimatedTokens } from './history.ts';
export { openAICompatibleModel } from './model.openai-compatible.ts';
export { sentenceOf } from './model.failures.ts';
export type { ModelLimits } from './model.deadlines.ts';
export type { ModelPrices } from './chat-exchange.ts';
export type { ModelEndpoint, ModelEndpointOptions } from './model.openai-compatible.ts';
export { NO_USAGE } from './model.ts';
export type { Model, ModelCall, ModelEnd, ModelMessage, ModelPart, ModelTool, ModelUsage } from './model.ts';
export { strictSchemaOf } from './tool-schema.ts';
export { asText, inOneLine, untrusted } from './untrusted.ts';
export { costSchema, usageResource, usageSchema } from './usage.ts';
