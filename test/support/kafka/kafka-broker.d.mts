/** @param root the folder of the project */
export function ensureKafkaBroker(root: string, options?: { readonly version?: string | undefined }): Promise<string>;
