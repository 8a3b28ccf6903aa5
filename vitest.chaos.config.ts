import { defineConfig } from 'vitest/config';

/** The random kills at their full length: minutes, and a process of its own. `npm run test:chaos` */
export default defineConfig({
  test: {
    include: ['test/chaos/*.chaos.ts'],
    setupFiles: process.env.SVC_TEST_PROGRAMS === 'built' ? ['test/support/built-programs.ts'] : [],
    pool: 'forks',
  },
});
