import type { Permissions } from '../../contracts/index.ts';

/** Variables that Node itself reads; none is secret. */
const BASICS = ['TZ', 'LANG', 'LC_ALL'];

/**
 * Never passed to plugin code, even if a manifest lists them: platform secrets, and variables that would
 * change the sandbox.
 */
const WITHHELD =
  /^(?:NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_COMPILE_CACHE|NODE_REDIRECT_WARNINGS|NODE_REPL_.*|LD_.*|DYLD_.*|SVC_.*|GATEWAY_.*)$/;

/** Variables visible to a plugin's handlers: those in `permissions.env`, except the platform's own. */
export function grantedNames(permissions: Permissions): string[] {
  return permissions.env.filter((name) => !WITHHELD.test(name));
}

/** Environment of a plugin's process: Node's basics and what the manifest lists, nothing else. */
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
