import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isBuilt, packageRoot } from '../../src/kit/files/paths.ts';
import { userEnvironment } from './user-environment.ts';

/**
 * Runs a plugin's own tests as its author would: `node --test` in its folder, where `svc-platform` is in
 * `node_modules`. Where tests run the sources, `svc-platform/testing` means these.
 */
export function runPluginTests(folder: string): Promise<{ code: number; stdout: string }> {
  const hooks = pathToFileURL(join(packageRoot, 'test/support/use-sources.js')).href;
  const args = [...(isBuilt ? [] : ['--import', hooks]), '--test', '--test-reporter=tap'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder, env: userEnvironment() }, (error, stdout) =>
      resolve({ code: error ? 1 : 0, stdout }),
    );
  });
}
