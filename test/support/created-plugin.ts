import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { tempDir } from './daemon.ts';
import { userEnvironment } from './user-environment.ts';

const execute = promisify(execFile);

interface Ran {
  code: number;
  output: string;
}

export interface CreatedPlugin {
  project: string;
  /** The plugin's folder. */
  folder: string;
  /** Runs the built `svc`, or npm, in a folder: with an npm cache that was empty at first, and no registry. */
  svc(cwd: string, ...args: string[]): Promise<Ran>;
  npm(cwd: string, ...args: string[]): Promise<Ran>;
}

/** A project with a plugin, made by `svc init` and `svc plugins create` of the build. */
export async function createPlugin(id: string, ...flags: string[]): Promise<CreatedPlugin> {
  const parent = await tempDir();
  const project = join(parent, 'shop');
  const env = {
    ...userEnvironment(),
    npm_config_cache: join(parent, 'cache'),
    npm_config_offline: 'true',
  };
  const run = (cwd: string, program: string, args: string[]): Promise<Ran> =>
    execute(program, args, { cwd, env, maxBuffer: 64 * 1024 * 1024 }).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
    );
  const svc = (cwd: string, ...args: string[]) => run(cwd, join(packageRoot, 'bin', 'svc'), args);
  for (const [cwd, ...args] of [
    [parent, 'init', 'shop', '--plugin', 'none'],
    [project, 'plugins', 'create', id, ...flags],
  ] as const) {
    const { code, output } = await svc(cwd, ...args);
    if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}: ${output}`);
  }
  return {
    project,
    folder: join(project, 'plugins', id.split('/').at(-1)!),
    svc,
    npm: (cwd, ...args) => run(cwd, 'npm', args),
  };
}
