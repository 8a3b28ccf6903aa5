import { join } from 'node:path';
import { vi } from 'vitest';

// The programs that tests start (daemons, runners, the CLI) are those of the build: what ships is what is
// tested, and they start three times as fast. Loaded by vitest.config.ts when SVC_TEST_PROGRAMS=built.
vi.mock('../../src/kit/files/paths.ts', async (importOriginal) => {
  const paths = await importOriginal<typeof import('../../src/kit/files/paths.ts')>();
  const entryFile = (name: string) => join(paths.packageRoot, 'dist', `${name}.js`);
  return { ...paths, isBuilt: true, entryFile };
});
