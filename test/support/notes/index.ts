/** Notes, an example of a feature: see docs/adding-a-feature.md. One stream, `note-<id>`, for each. */
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { noteRoutes } from './note.http.ts';
import { noteAnswers, type Answer } from './note.reactor.ts';
import { noteEntity, noteLiveEvents } from './note.read.ts';

export const notesModule = {
  name: 'notes',
  projections: [noteEntity.projection],
  liveEvents: noteLiveEvents,
} satisfies Module;

export function createNotes(core: Core, answer: Answer) {
  const notes = new Entities(noteEntity, core);
  return { notes, routes: (app: HttpApp) => noteRoutes(app, notes), reactors: [noteAnswers(answer)] };
}
