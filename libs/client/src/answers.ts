import { ApiError } from './errors.ts';

/**
 * The error of a reply that is not a success.
 *
 * @param body `error` of `openapi-fetch`
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

/** The detail as text: validation errors are joined. */
function sentence(detail: unknown): string | null {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return null;
  return detail.map(({ loc, msg }: { loc: unknown[]; msg: string }) => `${loc.join('.')}: ${msg}`).join('; ');
}
