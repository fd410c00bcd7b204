/** A resumable upload. Not part of the read models: it expires. */
export function uploadKey(organizationId: string, id: string): string {
  return `parley:upload:{${organizationId}:${id}}`;
}
