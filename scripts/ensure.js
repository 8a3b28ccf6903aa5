// Prepares a checkout: dependencies from the lockfile, and a build of the current sources.
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { buildCurrent, dependenciesCurrent } from './freshness.js';
import { withLock } from './lock.js';
import { run, withoutOwnPrograms } from './run.js';

const say = (text) => process.stderr.write(`svc: ${text}\n`);

/** Returns immediately if everything is current; otherwise installs or builds, with progress on stderr. Exits on failure. */
export async function ensureReady(root) {
  if (dependenciesCurrent(root) && (await buildCurrent(root))) return;
  const startedAt = Date.now();
  const waiting = (pid) => say(`waiting for pid ${pid}, which is installing or building here`);
  await withLock(root, waiting, async (env) => {
    if (!dependenciesCurrent(root)) await install(root, env);
    if (!(await buildCurrent(root))) await build(root, env);
  });
  say(`ready after ${((Date.now() - startedAt) / 1000).toFixed(1)}s`);
}

async function install(root, env) {
  say('installing dependencies with npm ci (the first time: up to a minute)');
  const [command, ...args] = npmCommand(root, env);
  await must(
    'npm ci',
    run(
      command,
      [...args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'],
      quietStdout(root, withoutOwnPrograms(root, env)),
    ),
  );
}

async function build(root, env) {
  say('building');
  await must('the build', run(process.execPath, [join(root, 'scripts', 'build.js')], quietStdout(root, env)));
}

/** stdout belongs to the caller, so output of these programs goes to stderr. */
function quietStdout(root, env) {
  return { cwd: root, env, stdio: ['ignore', 2, 2] };
}

async function must(task, exit) {
  const code = await exit;
  if (code === 0) return;
  say(`${task} failed with exit code ${code}; see above. Nothing was started.`);
  process.exit(code > 128 ? code : 1);
}

/** npm from PATH, else the one of this Node or the one that started us. */
function npmCommand(root, env) {
  const folders = withoutOwnPrograms(root, env).PATH.split(delimiter);
  if (folders.some((folder) => existsSync(join(folder, 'npm')))) return ['npm'];
  const beside = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  const script = [process.env.npm_execpath, beside].find((file) => file && existsSync(file));
  if (script) return [process.execPath, script];
  say('npm was not found. It is part of Node: https://nodejs.org');
  process.exit(1);
}
