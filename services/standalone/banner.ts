import type { Standalone } from './app.ts';

/** What is printed once everything runs: where it is, and the first key, which is never shown again. */
export function banner({ baseUrl, dataDir, firstKey }: Pick<Standalone, 'baseUrl' | 'dataDir' | 'firstKey'>): string {
  const { apiKey } = firstKey;
  const rows: [string, string][] = [
    ['API', `${baseUrl}/api/v1`],
    ['Docs', `${baseUrl}/docs`],
    ['Data', dataDir],
    ...(apiKey === null
      ? ([['API key', 'shown at the first start; npx parley keys create makes another']] as [string, string][])
      : ([['API key', `${apiKey}   (shown only now: keep it)`]] as [string, string][])),
    ['Stop', 'Ctrl-C'],
  ];
  return ['', 'Parley is running.', '', ...rows.map(([label, value]) => `  ${label.padEnd(9)}${value}`), '', ''].join(
    '\n',
  );
}
