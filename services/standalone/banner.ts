import type { Standalone } from './app.ts';

/** What is printed once everything runs: where it is, and the first key, which is never shown again. */
export function banner(
  { baseUrl, dataDir, firstKey }: Pick<Standalone, 'baseUrl' | 'dataDir' | 'firstKey'>,
  bootstrapKey: string | undefined,
): string {
  const rows: [string, string][] = [
    ['API', `${baseUrl}/api/v1`],
    ['Docs', `${baseUrl}/docs`],
    ['Data', dataDir],
    ['API key', keyText(firstKey.apiKey, bootstrapKey)],
    ['Stop', 'Ctrl-C'],
  ];
  return ['', 'Parley is running.', '', ...rows.map(([label, value]) => `  ${label.padEnd(9)}${value}`), '', ''].join(
    '\n',
  );
}

function keyText(apiKey: string | null, bootstrapKey: string | undefined): string {
  if (apiKey !== null) return `${apiKey}   (shown only now: keep it)`;
  const known = bootstrapKey === undefined ? 'shown at the first start' : 'that of PARLEY_BOOTSTRAP_KEY';
  return `${known}; npx parley keys create makes another`;
}
