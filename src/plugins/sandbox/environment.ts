import type { Permissions } from '../../contracts/index.ts';

/** What Node itself looks at; nothing of it is secret. */
const BASICS = ['TZ', 'LANG', 'LC_ALL'];

/** Never handed to plugin code, whatever a manifest lists: the platform's secrets, and what would change the sandbox. */
const WITHHELD =
  /^(?:NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_COMPILE_CACHE|NODE_REDIRECT_WARNINGS|NODE_REPL_.*|LD_.*|DYLD_.*|SVC_.*|GATEWAY_.*)$/;

/** The variables a plugin's handlers see: those that `permissions.env` names, save for the platform's own. */
export function grantedNames(permissions: Permissions): string[] {
  return permissions.env.filter((name) => !WITHHELD.test(name));
}

/** The environment of a plugin's process: Node's basics and what the manifest lists, nothing of the daemon's beside. */
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
