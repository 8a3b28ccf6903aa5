import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_FILE } from '../../contracts/index.ts';
import { readPackageJson } from '../package-json.ts';

/** Runs the manifest module of a plugin and resolves with the module's default export as JSON. */
export type EvaluateManifest = (folder: string, module: string) => Promise<unknown>;

/** Returns the path of the module that `package.json` names under `"svc"`, relative to the folder. */
export async function manifestModuleOf(folder: string): Promise<string | undefined> {
  const svc = (await readPackageJson(folder))?.svc;
  return typeof svc === 'string' && svc !== '' ? svc : undefined;
}

/** Returns the path of a plugin's manifest module, or undefined if the plugin has a manifest file. */
export async function manifestCodeOf(folder: string): Promise<string | undefined> {
  return existsSync(join(folder, MANIFEST_FILE)) ? undefined : manifestModuleOf(folder);
}
