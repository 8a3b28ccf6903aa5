import { ADAPTER_NAMES, type AdapterName, type ManifestV3 } from '../contracts/index.ts';
import { permissionSets } from './permission-sets.ts';

/** Returns the adapters that any permission set of the manifest requests. */
export function adaptersAskedFor(manifest: ManifestV3): AdapterName[] {
  const sets = permissionSets(manifest);
  return ADAPTER_NAMES.filter((name) => sets.some(({ platform }) => platform?.[name] === true));
}
