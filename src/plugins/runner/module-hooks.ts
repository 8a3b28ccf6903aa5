import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { SourceCode } from '../source-code.ts';
import { KeptCode } from './kept-code.ts';

const SDK_SPECIFIER = 'svc-platform/sdk';
const PLUGIN_IMPORT = 'svc-plugin-import:';
const MAX_RESOLVED = 10_000;
const resolved: string[] = [];

/** URLs of resolved modules, in the order of their resolution. Used to find the module that contains a syntax error. */
export const resolvedModules: readonly string[] = resolved;

let kept: KeptCode | undefined;

/** Returns whether a module's file exists on disk or in the retained code of an earlier plugin version. */
export function isModuleFile(path: string): boolean {
  return kept?.has(path) === true || existsSync(path);
}

/**
 * Installs module hooks that resolve `svc-platform/sdk` to the SDK of the running platform. With the hooks, the runner
 * can import packages from the plugin's folder. `code` replaces the plugin's modules on disk.
 */
export function installModuleHooks(sdkUrl: string, root: string, code?: SourceCode): void {
  if (code) kept = loadFrom(new KeptCode(root, code));
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

function loadFrom(own: KeptCode): KeptCode {
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context);
      } catch (error) {
        const url = own.resolve(specifier, context.parentURL);
        if (url === undefined) throw error;
        return { url, shortCircuit: true };
      }
    },
    load: (url, context, next) => own.load(url) ?? next(url, context),
  });
  return own;
}

/** Returns an import specifier that resolves a package from the plugin's folder. */
export function pluginSpecifier(name: string): string {
  return name === SDK_SPECIFIER ? name : PLUGIN_IMPORT + name;
}
