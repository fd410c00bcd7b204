/**
 * Fetches a token of the user, from the backend of the page. An {@link ApiError} that is not `passing` is final; after
 * every other error the client retries.
 */
export type TokenSource = () => Promise<string> | string;

type Fetch = (request: Request) => Promise<Response>;

/** Sends a token with each request, and fetches another one when the server refuses it: no clock of a page is trusted. */
export function withToken(source: TokenSource, fetch: Fetch = (request) => globalThis.fetch(request)): Fetch {
  let kept: Promise<string> | null = null;

  async function send(request: Request): Promise<{ response: Response; token: Promise<string> }> {
    const token = (kept ??= Promise.resolve(source()));
    try {
      request.headers.set('authorization', `Bearer ${await token}`);
    } catch (error) {
      if (kept === token) kept = null;
      throw error;
    }
    return { response: await fetch(request), token };
  }

  return async (request) => {
    // Its body can be read once.
    const again = request.clone();
    const { response, token } = await send(request);
    if (response.status !== 401) return response;
    // Unless another request has fetched one already.
    if (kept === token) kept = null;
    return (await send(again)).response;
  };
}
