/** Top-level names of a plugin's folder that are not sent to remote hosts. `.npmrc` can contain npm tokens. */
const AT_TOP = new Set(['.git', '.npmrc', '.svc']);
/** Matches paths that are not sent to remote hosts. The runner on the remote host provides `svc-platform`. */
const IN_MODULES = /(?:^|\/)node_modules\/(?:\.bin|svc-platform)$/;

/** Returns whether a file or folder is excluded when the plugin is sent to remote hosts. `path` is separated by `/`. */
export function staysBehind(path: string): boolean {
  return AT_TOP.has(path) || IN_MODULES.test(path);
}
