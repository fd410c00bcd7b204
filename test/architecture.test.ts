/**
 * Rules about the structure of the source: the direction of imports, and what belongs in which file. Each rule is
 * also run on planted violations, which proves that it can fail.
 */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as rules from './architecture/rules.ts';
import { readSourceTree, sourceTree } from './architecture/source-tree.ts';

const tree = readSourceTree(join(import.meta.dirname, '..'));

interface Case {
  readonly rule: rules.Rule;
  readonly says: string;
  /** Files that break the rule, and the start of each line that the rule must report. */
  readonly planted: readonly { readonly files: Readonly<Record<string, string>>; readonly found: readonly string[] }[];
  /** Files that look like violations and are allowed. */
  readonly allowed?: Readonly<Record<string, string>>;
}

const cases: readonly Case[] = [
  {
    rule: rules.importsGoDown,
    says: 'imports go down: kernel <- platform <- features <- services',
    planted: [
      {
        files: {
          'libs/kernel/a.ts': `import { x } from '#libs/platform/redis/redis.ts';`,
          'libs/platform/http/b.ts': `import {\n  x,\n  y,\n} from '#libs/features/channels/index.ts';`,
          'libs/features/channels/c.ts': `export { x } from '../../../services/gateway/app.ts';`,
          'services/gateway/d.ts': `import { x } from '#infra/private-redis/index.ts';`,
          'services/gateway/e.ts': `const x = await import('#test/support/redis.ts');`,
          'infra/private-redis/f.ts': `import type { x } from '#libs/platform/redis/redis.ts';`,
          'infra/private-redis/g.ts': `import { x } from '#infra/data-folder/index.ts';`,
          'libs/client/src/h.ts': `import type { x } from '../../kernel/ids.ts';`,
          'libs/features/channels/i.ts': `import { x } from '#libs/client/src/index.ts';`,
          'services/gateway/j.ts': `import { x } from '#libs/client/src/index.ts';`,
        },
        found: [
          'libs/kernel/a.ts',
          'libs/platform/http/b.ts',
          'libs/features/channels/c.ts',
          'services/gateway/d.ts',
          'services/gateway/e.ts',
          'infra/private-redis/f.ts',
          'infra/private-redis/g.ts',
          'libs/client/src/h.ts',
          'libs/features/channels/i.ts',
          'services/gateway/j.ts',
        ],
      },
    ],
    allowed: {
      'libs/features/channels/a.ts': `import { x } from '#libs/kernel/ids.ts';\nimport { y } from '#libs/platform/http/index.ts';`,
      'libs/features/channels/a.test.ts': `import { x } from '#test/support/redis.ts';`,
      'services/standalone/b.ts': `import { x } from '#infra/private-redis/index.ts';`,
      'infra/private-redis/c.ts': `import { x } from '#libs/platform/lifecycle/index.ts';`,
      'libs/kernel/d.ts': `// import { x } from '#services/gateway/app.ts';`,
      'libs/client/src/e.ts': `import { x } from './f.ts';`,
      'services/cli/g.ts': `import { x } from '#libs/client/src/index.ts';`,
    },
  },
  {
    rule: rules.platformImportsGoDown,
    says: 'imports between directories of libs/platform go down their layers, types included',
    planted: [
      {
        files: {
          'libs/platform/redis/a.ts': `import type { x } from '#libs/platform/http/index.ts';`,
          'libs/platform/live/b.ts': `import { x } from '../commands/index.ts';`,
          'libs/platform/redis/c.ts': `import { x } from '../eventstore/index.ts';`,
          'libs/platform/unordered/d.ts': `import { x } from '../lifecycle/index.ts';`,
          'libs/platform/http/e.ts': `import { x } from '../unordered/index.ts';`,
        },
        found: [
          'libs/platform/redis/a.ts',
          'libs/platform/live/b.ts',
          'libs/platform/redis/c.ts',
          'libs/platform/unordered/d.ts: libs/platform/unordered has no layer',
          'libs/platform/http/e.ts',
        ],
      },
    ],
    allowed: {
      'libs/platform/http/a.ts': `import { x } from '../redis/index.ts';\nimport { y } from './errors.ts';`,
      'libs/platform/redis/b.test.ts': `import { x } from '#libs/platform/http/index.ts';`,
    },
  },
  {
    rule: rules.directoriesAreEnteredByTheirIndex,
    says: 'directories are entered by their index.ts',
    planted: [
      {
        files: {
          'libs/features/reactions/a.ts': `import { x } from '#libs/features/channels/channel.events.ts';`,
          'services/gateway/b.ts': `import { x } from '#libs/features/channels/channels.routes.ts';`,
          'services/standalone/c.ts': `import { x } from '#infra/private-redis/ping.ts';`,
          'services/cli/d.ts': `import { x } from '#libs/client/src/link.ts';`,
          'libs/platform/http/e.ts': `import type { x } from '../redis/redis.ts';`,
          'services/gateway/f.ts': `import { x } from '#libs/platform/http/server.ts';`,
        },
        found: [
          'libs/features/reactions/a.ts',
          'services/gateway/b.ts',
          'services/standalone/c.ts',
          'services/cli/d.ts',
          'libs/platform/http/e.ts',
          'services/gateway/f.ts',
        ],
      },
    ],
    allowed: {
      'libs/features/reactions/a.ts': `import { x } from '#libs/features/channels/index.ts';`,
      'libs/features/channels/b.ts': `import { x } from './channel.events.ts';`,
      'libs/platform/http/c.ts': `import type { x } from '../redis/index.ts';`,
      'libs/platform/http/d.test.ts': `import { x } from '../redis/redis.ts';`,
    },
  },
  {
    rule: rules.storesAreReachedThroughThePlatform,
    says: 'only the platform imports the client libraries of stores',
    planted: [
      {
        files: {
          'libs/features/channels/a.ts': `import { Redis } from 'ioredis';`,
          'services/gateway/b.ts': `import type { EventStoreDBClient } from '@eventstore/db-client';`,
          'libs/platform/redis/c.ts': `import { credentials } from '@grpc/grpc-js';`,
          'libs/platform/eventstore/d.ts': `import { open } from 'lmdb';`,
          'infra/embedded-eventstore/e.ts': `import { EventStoreDBClient } from '@eventstore/db-client';`,
          'libs/features/media/f.ts': `const { S3 } = await import('@aws-sdk/client-s3');`,
        },
        found: [
          'libs/features/channels/a.ts',
          'services/gateway/b.ts',
          'libs/platform/redis/c.ts',
          'libs/platform/eventstore/d.ts',
          'infra/embedded-eventstore/e.ts',
          'libs/features/media/f.ts',
        ],
      },
    ],
    allowed: {
      'libs/platform/redis/a.ts': `import { Redis } from 'ioredis';`,
      'infra/embedded-eventstore/b.ts': `import { x } from '@eventstore/db-client/generated/streams_pb.js';`,
      'test/contract/event-store/c.ts': `import { x } from '@eventstore/db-client';`,
    },
  },
  {
    rule: rules.requestsGoThroughTheFetcher,
    says: 'only the fetcher opens connections to addresses from outside',
    planted: [
      {
        files: {
          'libs/features/crawls/a.ts': `import { Agent } from 'undici';`,
          'libs/features/crawls/b.ts': `const page = await fetch(url);`,
          'libs/platform/http/c.ts': `import { STATUS_CODES, request } from 'node:http';`,
          'services/cli/d.ts': `import https from 'node:https';`,
          'infra/private-redis/e.ts': `import {\n  createServer,\n  connect,\n} from 'node:net';`,
          'libs/features/media/f.ts': `import { lookup } from 'node:dns/promises';`,
          'libs/features/media/g.ts': `const socket = new WebSocket(url);`,
          'libs/features/media/h.ts': `import * as http from 'node:http';`,
          'libs/features/media/i.ts': `import net from 'node:net';`,
        },
        found: [
          'libs/features/crawls/a.ts',
          'libs/features/crawls/b.ts',
          'libs/platform/http/c.ts',
          'services/cli/d.ts',
          'infra/private-redis/e.ts',
          'libs/features/media/f.ts',
          'libs/features/media/g.ts',
          'libs/features/media/h.ts',
          'libs/features/media/i.ts',
        ],
      },
    ],
    allowed: {
      'libs/platform/fetch/a.ts': `import { Agent } from 'undici';`,
      'libs/client/src/b.ts': `const reply = await fetch(url);`,
      'libs/features/crawls/c.ts': `const page = await fetcher.fetch(url);\nprefetch(url);`,
      'libs/platform/http/d.ts': `import { createServer } from 'node:http';\nimport type { Socket } from 'node:net';`,
      'libs/platform/http/e.ts': `import { connect } from './redis.ts';`,
      'libs/platform/http/f.test.ts': `const reply = await fetch(url);`,
    },
  },
  {
    rule: rules.decidersArePure,
    says: 'the kernel and the deciders are pure',
    planted: [
      {
        files: {
          'libs/features/channels/channel.decider.ts': `const at = new Date().toISOString();`,
          'libs/features/runs/run.decider.ts': `import { x } from '#libs/platform/http/index.ts';`,
          'libs/features/users/user.ts': `import { x } from '#libs/platform/entity/index.ts';`,
          'libs/features/knowledge/knowledge.ts': `const id = newId();`,
          'libs/features/answering/run/run-lane.ts': `export const runLaneFold: Fold<RunLane, E> = f;\nconst at = Date.now();`,
          'libs/kernel/a.ts': `import { readFile } from 'node:fs/promises';`,
        },
        found: [
          'libs/features/channels/channel.decider.ts',
          'libs/features/runs/run.decider.ts',
          'libs/features/users/user.ts',
          'libs/features/knowledge/knowledge.ts',
          'libs/features/answering/run/run-lane.ts',
          'libs/kernel/a.ts',
        ],
      },
    ],
    allowed: {
      'libs/features/channels/channel.decider.ts': `const at = new Date(command.at);`,
      'libs/features/users/user.ts': `import { defineEvents } from '#libs/platform/eventstore/index.ts';\nimport { z } from 'zod';`,
      'libs/features/users/user.http.ts': `import { x } from '#libs/platform/http/index.ts';`,
    },
  },
  {
    rule: rules.redisKeysStandInKeysFiles,
    says: 'Redis keys are written in *.keys.ts',
    planted: [
      {
        files: {
          'libs/features/channels/a.ts': `redis.get('parley:rm:v1:x');`,
          'libs/platform/http/b.ts': 'redis.get(`limit:{${organization}}`);',
        },
        found: ['libs/features/channels/a.ts', 'libs/platform/http/b.ts'],
      },
    ],
    allowed: {
      'libs/features/channels/channels.keys.ts': 'export const key = `parley:{${organization}}`;',
      'libs/platform/lifecycle/a.ts': 'print(`parley: ${line}`); const path = `/channels/${id}`;',
    },
  },
  {
    rule: rules.environmentIsReadByMainOnly,
    says: 'only main.ts reads the environment',
    planted: [
      {
        files: { 'libs/platform/http/a.ts': `const port = process.env['PORT'];` },
        found: ['libs/platform/http/a.ts'],
      },
    ],
    allowed: { 'services/gateway/main.ts': `parseConfig(process.env);` },
  },
  {
    rule: rules.filesHaveNoCycles,
    says: 'imports between files have no cycles, types included',
    planted: [
      {
        files: {
          'libs/kernel/a.ts': `import { b } from './b.ts';`,
          'libs/kernel/b.ts': `import { c } from '#libs/kernel/c.ts';`,
          'libs/kernel/c.ts': `export { a } from './a.ts';`,
          'libs/kernel/d.ts': `import { a } from './a.ts';`,
        },
        found: ['libs/kernel/a.ts: libs/kernel/a.ts -> libs/kernel/b.ts -> libs/kernel/c.ts -> libs/kernel/a.ts'],
      },
      {
        files: {
          'services/a/a.ts': `import { b } from './b.ts';`,
          'services/a/b.ts': `import type { a } from './a.ts';`,
        },
        found: ['services/a/a.ts: services/a/a.ts -> services/a/b.ts -> services/a/a.ts'],
      },
    ],
    allowed: {
      'libs/kernel/a.ts': `import { b } from './b.ts';\nimport { c } from './c.ts';`,
      'libs/kernel/b.ts': `import { c } from './c.ts';`,
      'libs/kernel/c.ts': `// import type { a } from './a.ts';`,
    },
  },
  {
    rule: rules.partsHaveNoCycles,
    says: 'imports between features, and between services, have no cycles',
    planted: [
      {
        files: {
          'libs/features/channels/a.ts': `import { x } from '../users/index.ts';`,
          'libs/features/users/b.ts': `import type { x } from '#libs/features/channels/index.ts';`,
        },
        found: ['libs/features/channels: libs/features/channels -> libs/features/users -> libs/features/channels'],
      },
      {
        files: {
          'services/gateway/a.ts': `import { x } from '../realtime/b.ts';`,
          'services/realtime/c.ts': `import { x } from '../gateway/d.ts';`,
        },
        found: ['services/gateway: services/gateway -> services/realtime -> services/gateway'],
      },
    ],
    allowed: {
      'libs/features/channels/a.ts': `import { x } from '../users/index.ts';`,
      'libs/features/users/b.test.ts': `import { x } from '#libs/features/channels/index.ts';`,
      'services/features.ts': `import { x } from './gateway/app.ts';`,
      'services/gateway/c.ts': `import { x } from '../features.ts';`,
    },
  },
  {
    rule: rules.textsAreCutBetweenCharacters,
    says: 'texts are cut and made well-formed by admitText',
    planted: [
      {
        files: {
          'libs/features/crawls/a.ts': `const title = page.title?.slice(0, MAX_TITLE) ?? null;`,
          'libs/platform/mcp/b.ts': `const text = all.slice(0, MAX_PAGE_CHARS).toWellFormed();`,
          'services/cli/c.ts': `const type = given.slice(0, 100) + given.substring(1);`,
          'libs/features/runs/d.ts': `const text = all\n  .slice(0, 3 * MAX_EXCERPT);`,
        },
        found: [
          'libs/features/crawls/a.ts: .slice(0, MAX_TITLE)',
          'libs/platform/mcp/b.ts: .slice(0, MAX_PAGE_CHARS)',
          'libs/platform/mcp/b.ts: .toWellFormed(',
          'services/cli/c.ts: .slice(0, 100)',
          'services/cli/c.ts: .substring(',
          'libs/features/runs/d.ts: .slice(0, 3 * MAX_EXCERPT)',
        ],
      },
    ],
    allowed: {
      'libs/kernel/text.ts': `return text.slice(0, MAX_TITLE).toWellFormed();`,
      'libs/features/runs/a.ts': `const shown = names.slice(0, MAX_NAMES).concat(others.slice(0, 20), hash.slice(0, 16));`,
      'libs/features/runs/b.ts': `const part = text.slice(start, end);`,
    },
  },
  {
    rule: rules.importedFilesExist,
    says: 'imported files exist',
    planted: [
      {
        files: { 'libs/kernel/a.ts': `const worker = new Worker(new URL('./gone.ts', import.meta.url));` },
        found: ['libs/kernel/a.ts'],
      },
    ],
  },
  {
    rule: rules.exportsOfIndexesAreImported,
    says: 'an index.ts exports what other folders import',
    planted: [
      {
        files: {
          'libs/platform/redis/index.ts': `export { used, unused } from './a.ts';`,
          'libs/platform/redis/a.ts': '',
          'libs/platform/http/b.ts': `import { used } from '#libs/platform/redis/index.ts';`,
        },
        found: ['libs/platform/redis/index.ts'],
      },
    ],
    allowed: {
      'libs/platform/redis/index.ts': `export { used } from './a.ts';\nexport {\n  type Other,\n} from './a.ts';`,
      'libs/platform/redis/a.ts': '',
      'libs/platform/http/b.ts': `import { used, type Other } from '#libs/platform/redis/index.ts';`,
      'services/testing/index.ts': `export { unused } from './c.ts';`,
      'services/testing/c.ts': '',
    },
  },
  {
    rule: rules.filesAreImported,
    says: 'each file is imported by another, or begins a process',
    planted: [
      {
        files: {
          'libs/kernel/left-over.ts': '',
          'libs/kernel/used.ts': '',
          'services/cli/main.ts': `import '#libs/kernel/used.ts';`,
        },
        found: ['libs/kernel/left-over.ts'],
      },
    ],
    allowed: {
      'services/cli/main.ts': `const x = await import('./a.ts');`,
      'services/cli/a.ts': `new Worker(new URL('./b.thread.ts', import.meta.url));`,
      'services/cli/b.thread.ts': '',
      'libs/kernel/c.d.ts': '',
      'libs/kernel/d.test.ts': '',
      'test/support/e.ts': '',
    },
  },
  {
    rule: rules.namesSayWhatIsInside,
    says: 'no file is a drawer for everything',
    planted: [
      {
        files: { 'libs/platform/redis-utils.ts': '', 'test/helpers/a.ts': '', 'libs/kernel/channel-manager.ts': '' },
        found: ['libs/platform/redis-utils.ts', 'test/helpers/a.ts', 'libs/kernel/channel-manager.ts'],
      },
    ],
    allowed: { 'libs/platform/http/commons-license.ts': '' },
  },
  {
    rule: rules.nothingIsLeftForLater,
    says: 'nothing is left for later in a comment',
    planted: [{ files: { 'libs/kernel/a.ts': `// ${'TO'}DO: think` }, found: ['libs/kernel/a.ts'] }],
  },
  {
    rule: rules.filesAreShort,
    says: `no file has more than ${rules.MAX_LINES} lines`,
    planted: [{ files: { 'libs/kernel/a.ts': '// why\n'.repeat(rules.MAX_LINES + 1) }, found: ['libs/kernel/a.ts'] }],
    allowed: { 'libs/kernel/a.ts': 'x();\n'.repeat(rules.MAX_LINES) },
  },
];

const named = cases.map((one) => [one.says, one] as const);

describe('architecture', () => {
  it('looks at the real source', () => {
    expect(tree.size).toBeGreaterThan(50);
    expect(tree.get('libs/kernel/decider.ts')?.imports).toEqual([{ target: 'libs/kernel/event.ts', own: true }]);
  });

  it.each(named)('%s', (_, { rule }) => {
    expect(rule(tree)).toEqual([]);
  });

  it.each(named)('notices when it does not hold that %s', (_, { rule, planted, allowed = {} }) => {
    for (const { files, found } of planted) {
      const lines = rule(sourceTree(files));
      expect(lines).toHaveLength(found.length);
      for (const [index, start] of found.entries()) expect(lines[index]?.startsWith(start)).toBe(true);
    }
    expect(rule(sourceTree(allowed))).toEqual([]);
  });
});
