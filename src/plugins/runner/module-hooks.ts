import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const SDK_SPECIFIER = 'svc-platform/sdk';
const PLUGIN_IMPORT = 'svc-plugin-import:';
const MAX_RESOLVED = 10_000;
const resolved: string[] = [];

/** URLs of the modules that were resolved, in order: where a syntax error may stand. */
export const resolvedModules: readonly string[] = resolved;

/**
 * Makes `svc-platform/sdk` mean the running platform's, whatever lies in the plugin's `node_modules`, and
 * lets the runner import packages as the plugin would.
 */
export function installModuleHooks(sdkUrl: string, root: string): void {
  const parentURL = pathToFileURL(`${root}/svc.plugin.json`).href;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === SDK_SPECIFIER) return { url: sdkUrl, shortCircuit: true };
      const found = specifier.startsWith(PLUGIN_IMPORT)
        ? next(specifier.slice(PLUGIN_IMPORT.length), { ...context, parentURL })
        : next(specifier, context);
      if (resolved.length < MAX_RESOLVED) resolved.push(found.url);
      return found;
    },
  });
}

/** A package's name as seen from the plugin's folder. */
export function pluginSpecifier(name: string): string {
  return name === SDK_SPECIFIER ? name : PLUGIN_IMPORT + name;
}
