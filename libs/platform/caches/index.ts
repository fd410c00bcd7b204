import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `max` entries, which discards the least recently used one. For caches that are large when they are full:
 * with its option `max`, `LRUCache` allocates all entries at once, and with a size of 1 for each entry, as they come.
 */
export function recentlyUsed<Key extends {}, Value extends {}>(
  max: number,
  options: { readonly ttl?: number } = {},
): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1, ...options });
}
