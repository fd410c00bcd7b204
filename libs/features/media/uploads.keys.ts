/** A resumable upload. Not part of the read models: it expires. */
export function uploadKey(organizationId: string, id: string): string {
  return `parley:upload:{${organizationId}:${id}}`;
}

/** The uploads of an organization that are not complete. It expires with them. */
export function quotaKey(organizationId: string): string {
  return `parley:uploads:{${organizationId}}`;
}
