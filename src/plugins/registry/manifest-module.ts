import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_FILE } from '../../contracts/index.ts';
import { readPackageJson } from '../package-json.ts';

/** Runs the manifest module of the plugin in `folder` and resolves with its default export, as JSON. */
export type EvaluateManifest = (folder: string, module: string) => Promise<unknown>;

/** The module that a folder's `package.json` names under `"svc"`, relative to the folder. */
export async function manifestModuleOf(folder: string): Promise<string | undefined> {
  const svc = (await readPackageJson(folder))?.svc;
  return typeof svc === 'string' && svc !== '' ? svc : undefined;
}

/** The module that is a plugin's manifest; undefined where the manifest is data. */
export async function manifestCodeOf(folder: string): Promise<string | undefined> {
  return existsSync(join(folder, MANIFEST_FILE)) ? undefined : manifestModuleOf(folder);
}
