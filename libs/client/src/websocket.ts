/** The part of WebSocket that the client uses; browsers, Node 22 and the package `ws` provide it. */
export interface WebSocketLike {
  readonly protocol: string;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason: string }) => void): void;
  addEventListener(type: 'error', listener: () => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

/** @returns null if the runtime has none and `ws` is not installed (Node 20) */
export async function findWebSocket(): Promise<WebSocketConstructor | null> {
  const { WebSocket: own } = globalThis as { WebSocket?: unknown };
  if (isConstructor(own)) return own;
  try {
    // Bundlers for browsers must not resolve it: browsers have WebSocket.
    const name = 'ws';
    const found: { default?: unknown } = await import(/* @vite-ignore */ /* webpackIgnore: true */ name);
    return isConstructor(found.default) ? found.default : null;
  } catch {
    return null;
  }
}

function isConstructor(value: unknown): value is WebSocketConstructor {
  return typeof value === 'function';
}
