/**
 * Numbered questions, a model that answers each in four steps with three tool calls, and the pages that these read. What
 * the model says follows from the conversation alone, as that of a real endpoint, so a step can be repeated anywhere.
 */
import { type Answer, type ModelRequest, saysInParts } from '../model-server.ts';
import type { Website } from '../website.ts';
import type { Gate } from './gate.ts';

export const TOOL_CALLS = 3;

export function questionOf(n: number): string {
  return `Question ${n}: what do the pages say?`;
}

/** What the model says in a step of a question; steps count from 0. */
export function textOfStep(n: number, step: number): string {
  return `Step ${step} of question ${n}.`;
}

/** What the response must hold. */
export function answerTo(n: number): string {
  return Array.from({ length: TOOL_CALLS + 1 }, (_, step) => textOfStep(n, step)).join('\n\n');
}

export function pathOf(n: number, step: number): string {
  return `/pages/${n}/${step}`;
}

/** The question and the step that a request is about. */
function placeOf({ body }: ModelRequest): { readonly n: number; readonly step: number } {
  const last = body.messages.findLastIndex(({ role }) => role === 'user');
  const step = body.messages.slice(last).filter(({ role }) => role === 'tool').length;
  return { n: Number([...(body.messages[last]?.content ?? '').matchAll(/Question (\d+)/g)].at(-1)?.[1]), step };
}

/** `worker question step` of a request; its API key identifies the worker. */
export function keyOf(request: ModelRequest): string {
  const { n, step } = placeOf(request);
  return `${request.headers.authorization?.replace('Bearer ', '')} ${n} ${step}`;
}

/** @param gate holds answers in their middle, by {@link keyOf} */
export function answersQuestions(site: Pick<Website, 'origin'>, gate: Gate): Answer {
  return (response, request) => {
    const { n, step } = placeOf(request);
    const [first, rest] = [`Step ${step} of `, `question ${n}.`];
    const call = {
      id: 'same',
      name: 'read_web_page',
      arguments: JSON.stringify({ url: site.origin + pathOf(n, step) }),
    };
    const toolCalls = step < TOOL_CALLS ? { toolCalls: [call] } : {};
    const answer = saysInParts(
      { reasoning: [`Thinking about ${n}.`], text: [first] },
      () => gate.pass(keyOf(request)),
      { text: [rest], ...toolCalls },
    );
    return answer(response, request);
  };
}

/** Puts the pages of a question on the site. @param gate holds them, by their paths */
export function addPages({ pages }: Pick<Website, 'pages'>, gate: Gate, n: number): void {
  for (let step = 0; step < TOOL_CALLS; step += 1) {
    const path = pathOf(n, step);
    pages.set(path, {
      answer: (_request, response) =>
        void gate.pass(path).then(() => response.writeHead(200, { 'content-type': 'text/plain' }).end(`Page ${path}`)),
    });
  }
}
