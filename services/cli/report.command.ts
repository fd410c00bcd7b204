import { Command } from 'commander';

import type { components, RestClient } from '#libs/client/src/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';

import { dataOf, withApi } from './api.ts';
import type { CliParts, OutputOptions } from './command-context.ts';
import { graphOf } from './crawl.command.ts';
import { CliError } from './errors.ts';
import { json, progressBar } from './output.ts';

type Report = components['schemas']['Report'];

interface ReportOptions extends OutputOptions {
  readonly graph?: string;
}

const POLL_MS = 100;
const HAS_ENDED = /^(Ready|Cancelled|Failed)/;

export function reportCommand(parts: CliParts): Command {
  return new Command('report')
    .description('Write a report on a question from knowledge graphs: Markdown with its sources')
    .argument('<query...>', 'what to research')
    .option('-g, --graph <name>', 'name or id of the knowledge graph; default: the newest graphs')
    .option('--json', 'print JSON')
    .action((words: string[], options: ReportOptions) => report(parts, words.join(' '), options));
}

async function report(parts: CliParts, query: string, { graph: name, json: isJson }: ReportOptions): Promise<void> {
  const work = async ({ rest }: { readonly rest: RestClient }): Promise<void> => {
    const graph = name === undefined ? null : await graphOf(rest, name);
    if (name !== undefined && graph === null) throw new CliError(`there is no knowledge graph ${name}`);
    const body = { query, knowledge_graph: graph };
    const { id } = await dataOf(rest.POST('/api/v1/reports', { body }), 'there are no reports');
    const ended = await untilEnded(parts, rest, id);
    if (ended.status !== 'Ready') throw new CliError(ended.status ?? 'The report has no status');
    parts.print(isJson === true ? json(ended) : shown(ended.results));
  };
  await withApi(parts, work, { server: { command: 'report', scopes: ['read', 'write'], otherwise: 'work' } });
}

async function untilEnded({ terminal }: CliParts, rest: RestClient, id: string): Promise<Report> {
  const format = 'researching  {bar} {searched} of {questions} questions, {findings} findings';
  const bar = progressBar(terminal, format, { searched: 0, questions: 0, findings: 0 });
  try {
    for (;;) {
      const params = { path: { id } };
      const found = await dataOf(rest.GET('/api/v1/reports/{id}', { params }), 'the report is gone');
      const hasEnded = HAS_ENDED.test(found.status ?? '');
      const { searched, questions } = found.progress;
      // Edges are followed after the last question.
      bar.update(hasEnded ? 1 : searched / (questions + 1), found.progress);
      if (hasEnded) return found;
      await pause(POLL_MS);
    }
  } finally {
    bar.stop();
  }
}

/** Documents must not control the terminal. */
function shown(markdown: string): string {
  return markdown.replaceAll(/[^\P{Cc}\n]/gu, '\u{FFFD}');
}
