export { ConfigError, parseConfig, passwordsIn, type Config, type VariableName, type Variables } from './config.ts';
export { describeConfig, type DescribedVariable } from './describe-config.ts';
export { parseEventStoreUrl, type EventStoreUrl } from './event-store-url.ts';
export { allowedHostOf, parseAllowedHost, type AllowedHost } from './allowed-host.ts';
export type { EmbeddingConfig } from './embedding.ts';
export type { KafkaConfig, KafkaSasl, KafkaTls } from './kafka.ts';
export { VERSION } from './version.ts';
export { DEFAULT_PROMPT_LIMITS, type PromptLimits } from './prompts.ts';
export { DEFAULT_UPLOAD_LIMITS, type UploadLimits } from './uploads.ts';
