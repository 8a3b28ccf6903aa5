/** Names excluded at the top level. npm's settings in `.npmrc` may contain tokens. */
const AT_TOP = new Set(['.git', '.npmrc', '.svc']);
/**
 * Matches paths that are excluded because the runner provides the platform's package itself, and local links or copies
 * of it are not needed.
 */
const IN_MODULES = /(?:^|\/)node_modules\/(?:\.bin|svc-platform)$/;

/** Whether a file or folder, by its `/`-separated path, is excluded when the plugin is sent to hosts. */
export function staysBehind(path: string): boolean {
  return AT_TOP.has(path) || IN_MODULES.test(path);
}
