import type { z } from 'zod';
import { environment, setVariables, type VariableName, type Variables } from './config.ts';

export interface DescribedVariable {
  readonly name: VariableName;
  /** As it was written or as its default is; null when it is unset and has no default. Secrets are `********`. */
  readonly value: string | null;
  readonly source: 'environment' | 'default';
  /** The default as one would write it, null where there is none. */
  readonly default: string | null;
  readonly description: string;
}

const HIDDEN = '********';

/**
 * Every variable with its value and where it comes from, for `parley config` and for the table in the
 * README (call it with `{}` for the defaults alone). Never throws: it also shows what is wrong.
 */
export function describeConfig(variables: Variables): readonly DescribedVariable[] {
  const given = setVariables(variables);
  return Object.entries(environment.shape).map(([name, schema]) => {
    const written = given[name];
    const fallback = defaultOf(schema);
    const meta = schema.meta();
    const value = written === undefined ? fallback : meta?.['secret'] === true ? HIDDEN : withoutPassword(written);
    return {
      name: name as VariableName,
      value,
      source: written === undefined ? 'default' : 'environment',
      default: fallback,
      description: meta?.description ?? '',
    };
  });
}

function defaultOf(schema: z.ZodType): string | null {
  const definition = schema.def as { readonly type: string; readonly defaultValue?: unknown };
  return definition.type === 'prefault' ? String(definition.defaultValue) : null;
}

/** Hides the password in `redis://user:password@host`, also where the rest is no valid URL. */
function withoutPassword(value: string): string {
  return value.replace(/(:\/\/[^\s/:@]*):[^\s/]*@/g, `$1:${HIDDEN}@`);
}
