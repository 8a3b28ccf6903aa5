import { join } from 'node:path';
import type { LockEntry } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { pluginsFolder } from '../../../plugins/index.ts';
import type { Source } from '../sources/parse-source.ts';
import type { Agreed } from './consent.ts';

export interface PlanRequest extends Pick<Agreed, 'runManifest'> {
  /** Source to install from. The default is the source of the installed plugin. */
  source?: string | undefined;
  /** The plugin to update. Undefined for a new installation. */
  pluginId?: string | undefined;
  /** Keep the code of the plugin's MCP server, and list its tools anew. */
  keepCode?: boolean | undefined;
}

export interface Update extends Agreed, Pick<PlanRequest, 'source' | 'keepCode'> {}

/** Returns the folder of an installed plugin whose MCP server is kept. Throws CONFLICT for any other plugin. */
export function keptFolder(source: Source, entry: LockEntry | undefined, dataDir: string): string {
  if (source.kind === 'mcp' && entry) return join(pluginsFolder(dataDir), entry.folder);
  throw new PlatformError('CONFLICT', 'Only plugins of `svc plugins add-mcp` have tools to accept.');
}
