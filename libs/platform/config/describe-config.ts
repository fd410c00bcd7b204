import type { z } from 'zod';
import { canBeInFile, environment, secretsIn, setVariables, type VariableName } from './config.ts';
import type { Variables } from './secret-files.ts';

export interface DescribedVariable {
  readonly name: VariableName;
  /** The given value or the default; null if there is neither. Secrets are `********`. */
  readonly value: string | null;
  readonly source: 'environment' | 'file' | 'default';
  /** Whether `NAME_FILE` may name a file with the value. */
  readonly canBeInFile: boolean;
  /** The default as an operator would write it, or null. */
  readonly default: string | null;
  readonly description: string;
}

const HIDDEN = '********';
/** A shorter one may be a word of another variable. */
const MIN_SECRET = 8;

/**
 * Every variable with its value and source, for `parley config` and the table in docs/configuration.md (call it with `{}` for the
 * defaults). Never throws, because it also shows invalid values.
 */
export function describeConfig(variables: Variables): readonly DescribedVariable[] {
  const { given, fromFiles, problems } = setVariables(variables);
  const secrets = secretsIn(given).filter((secret) => secret.length >= MIN_SECRET);
  const shown = (value: string): string => secrets.reduce((text, one) => text.replaceAll(one, HIDDEN), value);
  return Object.entries(environment.shape).map(([name, schema]) => {
    const written = given[name];
    const fallback = defaultOf(schema);
    const meta = schema.meta();
    const unread = problems.find((problem) => written === undefined && problem.startsWith(`${name}_FILE `));
    const value =
      written === undefined
        ? (unread ?? fallback)
        : meta?.['secret'] === true
          ? HIDDEN
          : shown(withoutPassword(written));
    return {
      name: name as VariableName,
      value,
      source: fromFiles.has(name) ? 'file' : written === undefined ? 'default' : 'environment',
      canBeInFile: canBeInFile(name),
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
