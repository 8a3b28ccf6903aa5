import { ADAPTER_NAMES, type AdapterName, type ManifestV3, type Permissions } from '../contracts/index.ts';

/** The adapters that a manifest asks for, for the whole plugin or for a part of it. */
export function adaptersAskedFor({ permissions, rest, commands }: ManifestV3): AdapterName[] {
  const sets: Array<Permissions | undefined> = [
    permissions,
    ...(rest?.routes ?? []).map((route) => route.permissions),
    ...commands.map((command) => command.permissions),
  ];
  return ADAPTER_NAMES.filter((name) => sets.some((set) => set?.platform?.[name] === true));
}
