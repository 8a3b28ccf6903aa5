import type { Permissions } from '../../contracts/index.ts';

/** Environment variables that Node itself reads and that hold no secrets. Every plugin receives these variables. */
const BASICS = ['TZ', 'LANG', 'LC_ALL'];

/** Matches platform secrets and variables that would weaken the sandbox. Plugins never receive these variables. */
const WITHHELD =
  /^(?:NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_COMPILE_CACHE|NODE_REDIRECT_WARNINGS|NODE_REPL_.*|LD_.*|DYLD_.*|SVC_.*|GATEWAY_.*)$/;

/**
 * Returns the environment variable names in `permissions.env`, without platform secrets and variables that would weaken
 * the sandbox.
 */
export function grantedNames(permissions: Permissions): string[] {
  return permissions.env.filter((name) => !WITHHELD.test(name));
}

/**
 * Returns the environment of a plugin's process. The environment contains harmless variables that Node reads, and
 * variables that the manifest lists. A plugin that is allowed to start child processes also receives `PATH`.
 */
export function scrubEnvironment(
  permissions: Permissions,
  environment: NodeJS.ProcessEnv,
): Record<string, string> {
  const names = [...BASICS, ...grantedNames(permissions)];
  if (permissions.platform?.childProcess) names.push('PATH');
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
