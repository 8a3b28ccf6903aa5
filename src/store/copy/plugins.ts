import type pg from 'pg';
import type { LockFile } from '../../contracts/index.ts';
import { scopeName } from '../object-rules.ts';
import type { ObjectScope } from '../ports/index.ts';
import { insertObject } from './objects.ts';

/** Installed plugins of a data folder. */
export interface PluginSource {
  lock: LockFile;
  /** Scope of the packages in the object store. */
  scope: ObjectScope;
  /** Objects of all packages. A key can occur several times with the same data. */
  objects(): AsyncIterable<{ key: string; data: Uint8Array }>;
}

/** Copies the list of installed plugins and their packages. Returns the number of rows of `plugin_lock`. */
export async function copyPlugins(
  client: pg.Client,
  { lock, scope, objects }: PluginSource,
  now: number,
): Promise<number> {
  if (lock.revision === 0) return 0;
  const copied = new Set<string>();
  const name = scopeName(scope);
  let bytes = 0;
  for await (const { key, data } of objects()) {
    if (copied.has(key)) continue;
    copied.add(key);
    bytes += data.byteLength;
    await insertObject(client, { scope: name, key, modifiedAt: now }, data);
  }
  if (copied.size > 0)
    await client.query('insert into svc.state_object_usage (scope, bytes) values ($1, $2)', [name, bytes]);
  await client.query('insert into svc.plugin_lock (revision, plugins) values ($1, $2)', [
    lock.revision,
    JSON.stringify(lock.plugins),
  ]);
  return 1;
}
