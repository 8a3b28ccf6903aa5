import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

// What Node compiled is kept: programs run from the sources start in half the time, all others a sixth sooner.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

/** Their results depend on state of their process: secrets to mask, programs present, metrics, children, replaced modules. */
const ALONE = [
  'test/agent/gateway-crash.test.ts',
  'test/cli/backup-keys.test.ts',
  'test/daemons/metrics.test.ts',
  'test/daemons/redaction.test.ts',
  'test/daemons/rest/analytics.test.ts',
  'test/kit/telemetry/logger.test.ts',
  'test/plugins/memory.test.ts',
  'test/plugins/sandbox.test.ts',
];

export default defineConfig({
  test: {
    // `npm test` builds first and starts the built programs; a bare `vitest run` starts the sources, so that
    // an edit needs no build.
    setupFiles: [
      'test/support/cheap-secrets.ts',
      ...(process.env.SVC_TEST_PROGRAMS === 'built' ? ['test/support/built-programs.ts'] : []),
    ],
    // Real daemons, processes and sandboxes: a slow machine must not look like a failure.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000, interval: 10 } },
    // Threads share one process and its umask, working directory and signals; these tests start programs.
    pool: 'forks',
    // Most tests wait for processes rather than compute: four keep two cores busy.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/support/slowest-files.ts'],
    projects: [
      { extends: true, test: { name: 'alone', include: ALONE } },
      // One process for file after file: a fresh one, and the sources loaded into it anew, cost more than half of a
      // second of processor time each.
      {
        extends: true,
        test: { name: 'together', include: ['test/**/*.test.ts'], exclude: ALONE, isolate: false },
      },
    ],
  },
});
