// Runs other programs for the launcher and the build, forwarding signals and exit codes.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Resolves with the exit code, or 128 + n after a signal. Signals to this process are forwarded. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', ...options });
    const forward = FORWARDED.map((signal) => [signal, () => child.kill(signal)]);
    for (const [signal, pass] of forward) process.on(signal, pass);
    const settle = (finish) => {
      for (const [signal, pass] of forward) process.off(signal, pass);
      finish();
    };
    child.once('error', (error) => settle(() => reject(error)));
    child.once('exit', (code, signal) => settle(() => resolve(code ?? 128 + constants.signals[signal])));
  });
}

/** Path of the Node pinned in package.json. */
export function pinnedNode(root) {
  return join(root, 'node_modules', '.bin', 'node');
}

export async function runPinnedNode(root, args, options) {
  const node = pinnedNode(root);
  if (!existsSync(node)) {
    throw new Error(
      'The pinned Node is missing from node_modules: npm ran without install scripts. Run `npm rebuild node`.',
    );
  }
  return run(node, args, options);
}

/** Removes the checkout's programs from PATH: npm must not run on the Node it is about to replace. */
export function withoutOwnPrograms(root, env = process.env) {
  const own = join(root, 'node_modules');
  const path = (env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(own));
  return { ...env, PATH: [...path, dirname(process.execPath)].join(delimiter) };
}
