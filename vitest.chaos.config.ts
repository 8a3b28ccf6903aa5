import { defineConfig } from 'vitest/config';

/** Kill loops, floods and load: tests whose worth is repetition, which take minutes. `npm run test:chaos` */
export default defineConfig({
  test: {
    include: ['test/**/*.chaos.ts'],
    setupFiles: process.env.SVC_TEST_PROGRAMS === 'built' ? ['test/support/built-programs.ts'] : [],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000, interval: 10 } },
    pool: 'forks',
    // They load the machine as a part of the test.
    fileParallelism: false,
  },
});
