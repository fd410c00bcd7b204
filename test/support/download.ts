/** What became of the download of a file. */
export type Download = 'whole' | 'wrong' | 'broken' | 'store_unavailable' | 'kept refusal';

export async function downloadOf(reply: Promise<Response>, content: Buffer): Promise<Download> {
  const response = await reply.catch(() => null);
  const bytes = await response?.arrayBuffer().then(Buffer.from, () => null);
  if (response == null || bytes == null) return 'broken';
  if (response.ok) return bytes.equals(content) ? 'whole' : 'wrong';
  const { headers } = response;
  if (headers.get('cache-control')?.includes('immutable') === true || headers.has('etag')) return 'kept refusal';
  return JSON.parse(bytes.toString()).code;
}
