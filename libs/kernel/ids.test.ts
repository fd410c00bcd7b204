import { v5 } from 'uuid';
import { expect, it } from 'vitest';

import { derivedId, eventIdOf, newId } from './ids.ts';

it('derives the ids of RFC 9562, which the log contains', () => {
  for (const name of ['', '0', 'graph ["node","a"]', 'Größe 日本 🦉', 'x'.repeat(5_000)]) {
    const namespace = newId();
    expect(derivedId(namespace, name)).toBe(v5(name, namespace));
    expect(derivedId(namespace.toUpperCase(), name)).toBe(v5(name, namespace));
  }
  const source = newId();
  expect(eventIdOf(source, 12)).toBe(v5('12', source));
  expect(() => derivedId('not a UUID', 'name')).toThrow(TypeError);
});
