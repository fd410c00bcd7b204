export { ConfigError, parseConfig, type Config, type VariableName, type Variables } from './config.ts';
export { describeConfig, type DescribedVariable } from './describe-config.ts';
export type { KafkaConfig, KafkaSasl, KafkaTls } from './kafka.ts';
