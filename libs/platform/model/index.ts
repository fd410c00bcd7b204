/** Language models: the port, its adapter for endpoints, and how much of a conversation a model is given. */
export { boundedHistory, estimatedTokens } from './history.ts';
export { openAICompatibleModel } from './model.openai-compatible.ts';
export type { ModelLimits } from './model.deadlines.ts';
export type { ModelEndpoint, ModelEndpointOptions, ModelPrices } from './model.openai-compatible.ts';
export type {
  Model,
  ModelCall,
  ModelEnd,
  ModelFailure,
  ModelMessage,
  ModelPart,
  ModelTool,
  ModelToolCall,
  ModelUsage,
} from './model.ts';
export { untrusted } from './untrusted.ts';
