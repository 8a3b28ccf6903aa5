import type { Permissions } from '../../contracts/index.ts';
import { pluginOf } from './invoke-permission.ts';
import { grantingEntry } from './network-permission.ts';

/**
 * Returns the permission that a platform call uses, in the notation of installation plans: `platform.storage`,
 * `network api.example.com`. Undefined if the call needs no permission or does not have it.
 */
export function permissionOf(
  permissions: Permissions,
  service: string,
  args: readonly unknown[],
): string | undefined {
  if (service === 'fetch') return networkPermission(permissions.network, args[0]);
  if (service === 'tunnel')
    return networkPermission(permissions.network, { url: `https://${args[0]}:${args[1]}` });
  if (service === 'secrets') return secretPermission(permissions.secrets, args[0]);
  if (service === 'invoke') return invokePermission(permissions.invoke, args[0]);
  if (service === 'connections') return listed('connection', permissions.connections, args[0]);
  const granted = (permissions.platform ?? {}) as Record<string, boolean | undefined>;
  const isDefault = service === 'state' || service === 'cache';
  if (!isDefault && !Object.hasOwn(granted, service)) return undefined;
  return (granted[service] ?? isDefault) ? `platform.${service}` : undefined;
}

function secretPermission(secrets: readonly string[] = [], name: unknown): string | undefined {
  return typeof name === 'string' && secrets.includes(name) ? `secrets ${name}` : undefined;
}

function networkPermission(network: readonly string[], request: unknown): string | undefined {
  const url = (request as { url?: unknown } | undefined)?.url;
  if (typeof url !== 'string' || !URL.canParse(url)) return undefined;
  const entry = grantingEntry(new URL(url), network);
  return entry === undefined ? undefined : `network ${entry}`;
}

function listed(what: string, names: readonly string[] | undefined, name: unknown): string | undefined {
  return typeof name === 'string' && names?.includes(name) ? `${what} ${name}` : undefined;
}

function invokePermission(invoke: readonly string[], ref: unknown): string | undefined {
  if (typeof ref !== 'string') return undefined;
  const entry = [ref, pluginOf(ref)].find((each) => invoke.includes(each));
  return entry === undefined ? undefined : `invoke ${entry}`;
}
