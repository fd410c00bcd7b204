/** The package has no types of its own. */
declare module 'cluster-key-slot' {
  /**
   * The slot of a key or topic in a Redis Cluster: that of its hash tag if it has one. Wrong for keys with an empty
   * tag (`{}`), which Redis hashes as a whole; Parley has none.
   */
  export default function calculateSlot(key: string): number;
}
