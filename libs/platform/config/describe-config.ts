import type { z } from 'zod';
import { environment, setVariables, type VariableName, type Variables } from './config.ts';

export interface DescribedVariable {
  readonly name: VariableName;
  /** The given value or the default; null if there is neither. Secrets are `********`. */
  readonly value: string | null;
  readonly source: 'environment' | 'default';
  /** The default as an operator would write it, or null. */
  readonly default: string | null;
  readonly description: string;
}

const HIDDEN = '********';

/**
 * Every variable with its value and source, for `parley config` and the table in the README (call it with `{}` for the
 * defaults). Never throws, because it also shows invalid values.
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

/** Hides the password in `redis://user:password@host`, also in an invalid URL. */
function withoutPassword(value: string): string {
  return value.replace(/(:\/\/[^\s/:@]*):[^\s/]*@/g, `$1:${HIDDEN}@`);
}
