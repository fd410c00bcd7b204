import { describe, expect, it } from 'vitest';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { ChangeListener } from '#libs/platform/announcements/index.ts';

import { Applications } from './organization.read.ts';
import type { Organization } from './organization.ts';

/** An organization and announcements that the test controls. */
function started({ areReceived = true } = {}) {
  const state = {
    application: 'app_main' as Organization['application'],
    isMissing: false,
    reads: 0,
    isAway: false,
    nowMs: 0,
  };
  let announced: ChangeListener | undefined;
  const applications = new Applications(
    {
      async find() {
        state.reads += 1;
        if (state.isAway) throw storeUnavailable('Redis');
        return state.isMissing ? null : ({ application: state.application } as Organization);
      },
    },
    {
      areReceivedSince: () => areReceived,
      listen(listener) {
        announced = listener;
        return () => undefined;
      },
    },
    () => state.nowMs++,
  );
  const change = (application: Organization['application']): void => {
    state.application = application;
    announced?.onChange({ kind: 'organization-changed' });
  };
  return { state, change, of: () => applications.of('an organization') };
}

describe('the application of an organization', () => {
  it('is read once, and again after a change', async () => {
    const { state, change, of } = started();
    expect([await of(), await of(), await of()]).toEqual(['app_main', 'app_main', 'app_main']);
    expect(state.reads).toBe(1);
    change('health');
    expect([await of(), await of()]).toEqual(['health', 'health']);
    expect(state.reads).toBe(2);
  });

  it('is read again if it changed during the read', async () => {
    const { change, of } = started();
    const before = of();
    change(null);
    await before;
    expect(await of()).toBeNull();
  });

  it('that was read last counts while Redis is away; without one, the post fails', async () => {
    const { state, change, of } = started();
    state.isAway = true;
    await expect(of()).rejects.toMatchObject({ code: 'store_unavailable' });
    state.isAway = false;
    await of();
    state.isAway = true;
    change('health');
    expect(await of()).toBe('app_main');
    state.isAway = false;
    expect(await of()).toBe('health');
  });

  it('of a missing organization is not remembered, because nothing announces that it is created', async () => {
    const { state, of } = started();
    state.isMissing = true;
    expect(await of()).toBeNull();
    state.isMissing = false;
    expect(await of()).toBe('app_main');
  });

  it('is read again after 15 seconds, in case the announcement of a change was lost', async () => {
    const { state, of } = started();
    await of();
    state.application = 'health';
    state.nowMs += 14_000;
    expect(await of()).toBe('app_main');
    state.nowMs += 1_000;
    // This read is in the background.
    expect(await of()).toBe('app_main');
    expect(await of()).toBe('health');
    expect(state.reads).toBe(2);
  });

  it('is read again after a moment where announcements may be missed', async () => {
    const { state, of } = started({ areReceived: false });
    await of();
    state.nowMs += 780;
    await of();
    expect(state.reads).toBe(1);
    state.nowMs += 30;
    await of();
    expect(state.reads).toBe(2);
  });
});
