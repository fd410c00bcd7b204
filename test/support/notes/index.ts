/** Notes, an example of a feature: see docs/adding-a-feature.md. One stream, `note-<id>`, for each. */
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { noteRoutes } from './note.http.ts';
import { noteEntity, noteLiveEvents } from './note.read.ts';

export { noteAnswers } from './note.reactor.ts';

export const notesModule = {
  name: 'notes',
  projections: [noteEntity.projection],
  liveEvents: noteLiveEvents,
  create(core: Core) {
    const notes = new Entities(noteEntity, core);
    return { notes, routes: (app: HttpApp) => noteRoutes(app, notes) };
  },
} satisfies Module;
