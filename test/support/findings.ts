/** Terms, plans and findings of a search, for pure tests of quotes and reports. */
import type { Finding, Plan, Term } from '#libs/features/knowledge/index.ts';

export const term = (word: string, values: Partial<Term> = {}): Term => ({
  word,
  weight: 2,
  found: 'exact',
  correction: null,
  ...values,
});
export const plan = (...terms: Term[]): Plan => ({ graphs: [{ id: 'g', name: 'Company' }], questions: ['?'], terms });
export const section = (name: string, passage: string, values: Partial<Finding> = {}): Finding => ({
  graphId: 'g',
  uuid: name,
  name,
  labels: ['Section'],
  summary: null,
  edge: null,
  sources: [{ documentId: 'd', name: 'Manual', url: 'https://example.org/a b', passage }],
  hop: 0,
  ...values,
});
