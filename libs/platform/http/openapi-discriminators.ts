import { z } from 'zod';

const reference = z.strictObject({ $ref: z.string().startsWith('#/components/schemas/') });
const unionOfReferences = z.looseObject({ oneOf: z.array(reference).min(2) });
const tagged = z.looseObject({ properties: z.record(z.string(), z.unknown()), required: z.array(z.string()) });
const constant = z.looseObject({ const: z.string() });

/**
 * Says of every `oneOf` whose named alternatives are told apart by a constant of theirs, by which one:
 * zod writes the constants, and leaves the `discriminator` of OpenAPI out.
 *
 * @returns a copy of `document`
 */
export function withDiscriminators(document: unknown, schemas: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(document)) return document.map((one) => withDiscriminators(one, schemas));
  if (typeof document !== 'object' || document === null) return document;
  const copy = Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, withDiscriminators(value, schemas)]),
  );
  const union = unionOfReferences.safeParse(document);
  const discriminator = union.success ? discriminatorOf(union.data.oneOf, schemas) : null;
  return discriminator === null ? copy : { ...copy, discriminator };
}

function discriminatorOf(
  alternatives: readonly { readonly $ref: string }[],
  schemas: Readonly<Record<string, unknown>>,
): object | null {
  const [first] = alternatives;
  for (const propertyName of Object.keys(first ? constantsOf(first.$ref, schemas) : {})) {
    const mapping: Record<string, string> = {};
    for (const { $ref } of alternatives) {
      const value = constantsOf($ref, schemas)[propertyName];
      if (value !== undefined) mapping[value] = $ref;
    }
    if (Object.keys(mapping).length === alternatives.length) return { propertyName, mapping };
  }
  return null;
}

/** The required properties of a schema that have but one value. */
function constantsOf(ref: string, schemas: Readonly<Record<string, unknown>>): Record<string, string> {
  const schema = tagged.safeParse(schemas[ref.slice('#/components/schemas/'.length)]);
  const constants: Record<string, string> = {};
  for (const name of schema.data?.required ?? []) {
    const property = constant.safeParse(schema.data?.properties[name]);
    if (property.success) constants[name] = property.data.const;
  }
  return constants;
}
