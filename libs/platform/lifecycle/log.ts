/** The part of a structured log that lifecycle code needs; a pino logger has it. */
export interface LifecycleLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLog: LifecycleLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
