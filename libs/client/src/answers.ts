import { ApiError } from './errors.ts';

/**
 * What an answer that is no success says.
 *
 * @param body as `openapi-fetch` gives it in `error`
 */
export function refusalOf(response: Response, body: unknown): ApiError {
  const { detail, code, request_id: requestId } = membersOf(body);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError({
    status: response.status,
    code: typeof code === 'string' ? code : response.status === 422 ? 'validation_error' : `http_${response.status}`,
    detail: sentence(detail) ?? `the server answered ${response.status}`,
    retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
    requestId: typeof requestId === 'string' ? requestId : null,
  });
}

function membersOf(body: unknown): { detail?: unknown; code?: unknown; request_id?: unknown } {
  return typeof body === 'object' && body !== null ? body : {};
}

/** One sentence, or one of each validation error. */
function sentence(detail: unknown): string | null {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return null;
  return detail.map(({ loc, msg }: { loc: unknown[]; msg: string }) => `${loc.join('.')}: ${msg}`).join('; ');
}
