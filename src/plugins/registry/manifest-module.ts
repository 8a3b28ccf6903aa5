import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Runs the manifest module of the plugin in `folder` and resolves with its default export, as JSON. */
export type EvaluateManifest = (folder: string, module: string) => Promise<unknown>;

/** The module that a folder's `package.json` names under `"svc"`, relative to the folder. */
export async function manifestModuleOf(folder: string): Promise<string | undefined> {
  try {
    const { svc } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { svc?: unknown };
    return typeof svc === 'string' && svc !== '' ? svc : undefined;
  } catch {
    return undefined;
  }
}
