import type { Permissions } from '../../contracts/index.ts';

/** Variables that every plugin receives. Node itself reads them, and none of them is secret. */
const BASICS = ['TZ', 'LANG', 'LC_ALL'];

/** Platform secrets and variables that would weaken the sandbox. A manifest cannot request them. */
const WITHHELD =
  /^(?:NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_COMPILE_CACHE|NODE_REDIRECT_WARNINGS|NODE_REPL_.*|LD_.*|DYLD_.*|SVC_.*|GATEWAY_.*)$/;

/** Returns the variables listed in `permissions.env`, without those that no plugin may receive. */
export function grantedNames(permissions: Permissions): string[] {
  return permissions.env.filter((name) => !WITHHELD.test(name));
}

/** Returns the environment of a plugin's process: harmless variables of Node and those that the manifest lists. */
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
