/** Invariants of key chains under random histories, including requests that die between two appends. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { type Decision, foldEvents } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { ChangeListener } from '#libs/platform/announcements/index.ts';

import { KeyAuthenticator, knownKey } from './key-authenticator.ts';
import { newKey } from './key-form.ts';
import {
  decideIssue,
  decideRevoke,
  decideRotate,
  decideWithdraw,
  isActive,
  type Key,
  type KeyEvent,
  keyFold,
  type KeyRejection,
  type KeyState,
} from './key.ts';
import { rounds } from '#test/support/rounds.ts';

const organizationId = 'organization-1';

/** A log of keys in memory, and the requests that change it, in the same steps as the real ones. */
class Keys {
  readonly states = new Map<string, KeyState>();
  readonly secrets: string[] = [];
  readonly revoked = new Set<string>();
  readonly ends = new Map<string, number>();
  nowMs = Date.parse('2026-01-31T12:00:00.000Z');
  #made = 0;

  get at(): string {
    return new Date(this.nowMs).toISOString();
  }

  idAt(index: number): string | undefined {
    const secret = this.secrets[index % Math.max(1, this.secrets.length)];
    return secret === undefined ? undefined : newKey(secret).id;
  }

  issue(rotatedFrom: string | null, lifeMs: number | null, key = this.makeSecret()): void {
    const expiresAt = lifeMs === null ? null : new Date(this.nowMs + lifeMs).toISOString();
    const { secret, ...stored } = key;
    const description = {
      name: 'k',
      principal: { type: 'service', id: 's' },
      scopes: ['read'],
      access: 'organization' as const,
      expiresAt,
      rotatedFrom,
    };
    const data = { ...stored, ...description } as const;
    const issued = this.#decide(key.id, (state) =>
      decideIssue(state, { ...data, scopes: ['read'], principal: { type: 'service', id: 's' } }, 'operator'),
    );
    if (!issued) return;
    this.secrets.push(secret);
    if (lifeMs !== null) this.#endsBy(key.id, this.nowMs + lifeMs);
  }

  makeSecret(): ReturnType<typeof newKey> {
    this.#made += 1;
    return newKey(`secret-${this.#made}`.padEnd(40, 'x'));
  }

  /** `diesAfter`: how many of the request's steps happen before its process is killed. */
  rotate(id: string, graceMs: number | null, diesAfter: number): void {
    const key = this.states.get(id);
    if (key === undefined || key === null || key === 'withdrawn') return;
    const inactive = new Set<string>();
    const { rotatedFrom, rotatedTo } = key;
    if (rotatedFrom !== null && !isActive(this.states.get(rotatedFrom) ?? null, this.at)) inactive.add(rotatedFrom);
    if (diesAfter === 0) return;
    if (rotatedTo !== null) {
      this.#decide(rotatedTo, decideWithdraw);
      if (!isActive(this.states.get(rotatedTo) ?? null, this.at)) inactive.add(rotatedTo);
    }
    if (diesAfter === 1) return;
    const successor = this.makeSecret();
    const graceEndsAt = graceMs === null ? null : new Date(this.nowMs + graceMs).toISOString();
    const rotation = { to: successor.id, graceEndsAt, at: this.at, inactive };
    if (!this.#update(id, (one) => decideRotate(one, { ...rotation, grantor: 'operator' }))) return;
    if (graceMs !== null) this.#endsBy(id, this.nowMs + graceMs);
    if (diesAfter === 2) return;
    this.issue(id, key.expiresAt === null ? null : Date.parse(key.expiresAt) - this.nowMs, successor);
  }

  revoke(id: string): void {
    if (this.#update(id, (key) => decideRevoke(key, 'operator'))) this.revoked.add(id);
  }

  #update(id: string, decide: (key: Key) => Decision<KeyEvent, KeyRejection>): boolean {
    const key = this.states.get(id) ?? null;
    return key !== null && key !== 'withdrawn' && this.#decide(id, () => decide(key));
  }

  #decide(id: string, decide: (state: KeyState) => Decision<KeyEvent, KeyRejection>): boolean {
    const state = this.states.get(id) ?? null;
    const decision = decide(state);
    if (!decision.ok) return false;
    const metadata = {
      at: this.at,
      organizationId,
      actor: { type: 'system' as const, id: 'test' },
      commandId: 'c',
      $correlationId: 'c',
      $causationId: 'c',
    };
    const events = decision.events.map((event) => ({ ...event, id: 'e', revision: streamRevision(0), metadata }));
    this.states.set(id, foldEvents(keyFold, state, events));
    return true;
  }

  #endsBy(id: string, endMs: number): void {
    this.ends.set(id, Math.min(endMs, this.ends.get(id) ?? Infinity));
  }
}

/** Whether the key works by the model, which uses none of the code under test. */
function works(keys: Keys, id: string): boolean {
  return !keys.revoked.has(id) && (keys.ends.get(id) ?? Infinity) > keys.nowMs;
}

function rootOf(keys: Keys, id: string): string {
  const state = keys.states.get(id);
  if (state === undefined || state === null || state === 'withdrawn' || state.rotatedFrom === null) return id;
  return rootOf(keys, state.rotatedFrom);
}

const lengthMs = fc.option(fc.integer({ min: 0, max: 5_000 }), { nil: null });
const step = fc.oneof(
  fc.record({ do: fc.constant('issue' as const), lifeMs: lengthMs }),
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('rotate' as const),
      key: fc.nat(20),
      graceMs: lengthMs,
      diesAfter: fc.oneof({ weight: 3, arbitrary: fc.constant(9) }, fc.nat(2)),
    }),
  },
  fc.record({ do: fc.constant('revoke' as const), key: fc.nat(20) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
);

describe('any history of keys', () => {
  it('leaves at most two working keys in a chain, and authenticates no revoked or expired key', async () => {
    const seen = { two: 0, refused: 0, accepted: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const keys = new Keys();
        let announced: ChangeListener | undefined;
        const authenticator = new KeyAuthenticator({
          directory: { byId: async (id) => knownKey(keys.states.get(id) ?? null, null) },
          announcements: {
            areReceivedSince: () => true,
            listen(listener) {
              announced = listener;
              return () => undefined;
            },
          },
          now: () => keys.nowMs,
        });
        for (const one of steps) {
          const id = 'key' in one ? keys.idAt(one.key) : undefined;
          if (one.do === 'issue') keys.issue(null, one.lifeMs);
          if (one.do === 'rotate' && id !== undefined) keys.rotate(id, one.graceMs, one.diesAfter);
          if (one.do === 'revoke' && id !== undefined) keys.revoke(id);
          if (one.do === 'wait') keys.nowMs += one.ms;
          // Announce the change as the real requests do.
          if (id !== undefined) announced?.onChange({ kind: one.do === 'revoke' ? 'revoked' : 'changed', keyId: id });

          const perChain = new Map<string, number>();
          for (const secret of keys.secrets) {
            const key = newKey(secret);
            const principal = await authenticator.authenticate(secret);
            expect(principal?.keyId ?? null).toBe(works(keys, key.id) ? key.id : null);
            if (principal === null) seen.refused += 1;
            else {
              seen.accepted += 1;
              const root = rootOf(keys, key.id);
              perChain.set(root, (perChain.get(root) ?? 0) + 1);
            }
          }
          const most = Math.max(0, ...perChain.values());
          expect(most).toBeLessThanOrEqual(2);
          if (most === 2) seen.two += 1;
        }
      }),
      { numRuns: rounds(300) },
    );
    // The histories were not trivial.
    expect(Math.min(seen.two, seen.refused, seen.accepted)).toBeGreaterThan(50);
  });
});
