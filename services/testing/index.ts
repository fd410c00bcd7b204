/** Parley for the test suites of other projects; docs/testing.md shows how to use it. */
export { startParley } from './start-parley.ts';
export type { StartedParley, StartParleyOptions } from './in-process.ts';
export { testParley } from './test-parley.ts';
export type {
  ChannelFields,
  KeyFields,
  ParleyAccess,
  TestCaller,
  TestOrganization,
  TestParley,
  TestUser,
  UserFields,
} from './test-parley.ts';
