/** In a plugin's own folder: history, npm's settings (which may hold tokens), the data of a project. */
const AT_TOP = new Set(['.git', '.npmrc', '.svc']);
/** The runner brings the platform along, whatever form lies here: links, a link, or an installed copy. */
const IN_MODULES = /(?:^|\/)node_modules\/(?:\.bin|svc-platform)$/;

/** Whether a file or folder, by its `/`-separated path in a plugin's folder, stays behind when the plugin is sent to hosts. */
export function staysBehind(path: string): boolean {
  return AT_TOP.has(path) || IN_MODULES.test(path);
}
