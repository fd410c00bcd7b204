/**
 * Reactors: effects that follow from events, such as the runs of agents. See `Reactor` for guarantees and omissions.
 *
 *     const answers = reactor({
 *       name: 'note-answers',
 *       on: ['NoteCreated.v1'],
 *       process: notes.projection,
 *       isEnded: (note) => note.answer !== null,
 *       handle: async (event, process) => [{ type: 'NoteAnswered.v1', data: { answer: await answer(event, process) } }],
 *       giveUp: (_note, { reason }) => [{ type: 'NoteAnswered.v1', data: { answer: `no answer: ${reason}` } }],
 *     });
 */
export { gathered, GROUP_PREFIX, groupNameOf, reactor, reactorNameOf, RetryLater } from './reactor.ts';
export type { AnyReactor, EndedProcess, Process, Reactor } from './reactor.ts';
export { ReactorRunner } from './reactor-runner.ts';
export type { AttemptOutcome, ReactorRunnerOptions } from './reactor-runner.ts';
export type { RecordedStep } from './step.ts';
export { unlessOvertaken } from './overtaken.ts';
