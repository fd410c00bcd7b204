import { unreachable } from '#libs/kernel/decider.ts';
import { conflict, mayNotActAs, notFound, refuseIfMatch, sendJson } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { MAX_DRAFT_BYTES } from './drafts.ts';
import type { DraftResult, Drafts } from './drafts.ts';
import { requirePlace } from './interactions.inputs.ts';
import { draftSchema, interactionParams, writeDeltaBody } from './interactions.schemas.ts';

export interface DraftRouteParts {
  readonly drafts: Drafts;
}

/** Declares the route by which the text of an interaction is told while it is being written. */
export function draftRoutes(app: HttpApp, { drafts }: DraftRouteParts): void {
  app.post(
    '/api/v1/interactions/:interaction_id/deltas',
    {
      config: { scope: 'write' },
      preHandler: refuseIfMatch,
      schema: {
        operationId: 'writeInteractionDelta',
        summary: 'Show the text of an incomplete interaction as it is being written',
        description:
          'For those who listen: no read shows it, and no log keeps it. It is forgotten five minutes after the last ' +
          'delta, and when the interaction is completed or fails.',
        tags: ['interactions'],
        params: interactionParams,
        body: writeDeltaBody,
        response: { 200: draftSchema },
      },
    },
    async (request, reply) => {
      const { offset, text } = request.body;
      const place = requirePlace(request.params.interaction_id);
      const { organizationId } = request.principal;
      const result = await drafts.put(organizationId, place, { offset: offset ?? null, text }, request.principal);
      if (!result.ok) throw errorOf(result);
      return sendJson(reply, JSON.stringify(draftOf(request.params.interaction_id, result.length)));
    },
  );
}

function draftOf(interactionId: string, length: number): object {
  return { interaction_id: interactionId, length };
}

function errorOf(result: DraftResult & { readonly ok: false }): Error {
  switch (result.reason) {
    case 'not_found':
      return notFound();
    case 'not_the_sender':
      return mayNotActAs();
    case 'complete_already':
      return conflict('The interaction is complete', 'complete_already');
    case 'too_long':
      return conflict(`The text of an interaction has at most ${MAX_DRAFT_BYTES} bytes`, 'draft_too_long');
    case 'wrong_offset':
      return conflict(`The text has ${result.length} UTF-16 code units so far`, 'wrong_offset', undefined, {
        length: result.length,
      });
    default:
      return unreachable(result);
  }
}
