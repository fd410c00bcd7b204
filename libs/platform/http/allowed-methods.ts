/**
 * Which methods a path takes, for 405 with `Allow` where a path exists and the method does not.
 * Fastify's router answers only "no route"; this looks the path up again, off the hot path.
 */
export interface AllowedMethods {
  add(method: string, pattern: string): void;
  /** Methods of the routes that match the path of `url`; empty when there are none. */
  of(url: string): string[];
}

export function createAllowedMethods(): AllowedMethods {
  const routes = new Map<string, { matches: RegExp; methods: Set<string> }>();
  return {
    add(method, pattern) {
      const known = routes.get(pattern) ?? { matches: matcherOf(pattern), methods: new Set<string>() };
      known.methods.add(method);
      routes.set(pattern, known);
    },
    of(url) {
      const path = url.split(/[?#;]/, 1)[0] ?? '';
      const found = [...routes.values()].filter(({ matches }) => matches.test(path));
      return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
    },
  };
}

/** Parameters (`:id`) and a trailing wildcard; nothing else is used in our patterns. */
function matcherOf(pattern: string): RegExp {
  const source = pattern
    .split('/')
    .map((part) => (part.startsWith(':') ? '[^/]+' : part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('/');
  return new RegExp(`^${source}$`);
}
