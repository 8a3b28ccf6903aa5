import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// What Node compiled is kept: programs run from the sources start in half the time, all others a sixth sooner.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm test` builds first and starts the built programs; a bare `vitest run` starts the sources, so that
    // an edit needs no build.
    setupFiles: process.env.SVC_TEST_PROGRAMS === 'built' ? ['test/support/built-programs.ts'] : [],
    // Real daemons, processes and sandboxes: a slow machine must not look like a failure.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 15_000, interval: 10 } },
    // Threads share one process and its umask, working directory and signals; these tests start programs.
    pool: 'forks',
    // Most tests wait for processes rather than compute: three keep two cores busy.
    maxWorkers: 3,
  },
});
