/** Tests of clients that are not run, by patterns of their names, and why: the embedded event store lacks these features. */
export type LeftOut = Readonly<Record<string, string>>;

/** Sections of the guide of the client for Python. */
export const PYTHON: LeftOut = {
  '^Run container': 'TLS',
  '^Multi-append|^Append records': 'appends to several streams at once, of KurrentDB 25.1 and 26.1',
  rojection: 'projections',
  '^Recorded events': 'no example, but an excerpt of the client',
  '^FastAPI|^OpenTelemetry': 'examples of other packages',
};

/** Functions of the crate's tests, by parts of their names. */
export const RUST: LeftOut = {
  'operations::test_stats': 'statistics',
  'operations::test_merge_indexes': 'operations of a server',
  'operations::test_scavenge': 'operations of a server',
  'operations::test_shutdown': 'operations of a server',
  'operations::test_op_restart': 'operations of a server; persistent_subscriptions::test_restart_… runs',
  'operations::test_resign_node': 'clusters',
  'operations::test_set_node_priority': 'clusters',
  'operations::test_gossip': 'HTTP, over which this client reads gossip',
  _user: 'users',
};

/** Tests of the module; patterns of Go, which match each part of a name. */
export const GO: LeftOut = {
  'TestClusterSuite|TestStreams/Rebalance': 'clusters',
  'TestSecureAuthenticationSuite|TestStreams/SecureAuthentication|TestOAuth': 'TLS, and users',
  'TestStreams/ReadStream/TestReadStreamWithCredentialsOverride': 'TLS: without it, no credentials are checked',
  'TestReadStreamSuite/TestReadStreamWithCredentialsOverride': 'TLS: without it, no credentials are checked',
  'TestAppendRecords|TestMultiAppend|TestStreams/MultiAppend':
    'appends to several streams at once, of KurrentDB 25.1 and 26.1',
  'TLS|Certificate': 'TLS',
  Projection: 'projections',
};
