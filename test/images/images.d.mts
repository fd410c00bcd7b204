export type StoreKind = 'redis' | 'eventstore' | 'kafka';

export const DEBIAN_IMAGE: string;
export const BASE_IMAGE: string;
export const CADDY_IMAGE: string;
export const PARLEY_IMAGE: string;
export const REAPER_IMAGE: string;
export const STORE_IMAGES: Readonly<
  Record<StoreKind, { readonly fromRegistry: string; readonly local: string; readonly variable: string }>
>;
export function candidatesOf(kind: StoreKind, env?: Readonly<Record<string, string | undefined>>): readonly string[];
