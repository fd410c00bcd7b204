import { describe, expect, it } from 'vitest';

import { ROLE_NAMES, ROLES } from './roles.ts';
import { selectRoles } from './start-roles.ts';

const namesOf = (names: readonly string[]): readonly string[] => selectRoles(ROLES, names).map(({ name }) => name);

describe('the choice of roles', () => {
  it('is all of them by default, in the order of the table', () => {
    expect(namesOf([])).toEqual(ROLE_NAMES);
    expect(namesOf(['gateway', 'projector'])).toEqual(['projector', 'gateway']);
  });

  it('refuses every unknown name', () => {
    expect(() => namesOf(['relay', 'gatway', 'worke'])).toThrow(
      [
        `ROLES must hold names of roles (${ROLE_NAMES.join(', ')}); "gatway" is none`,
        `ROLES must hold names of roles (${ROLE_NAMES.join(', ')}); "worke" is none`,
      ].join('\n'),
    );
  });
});
