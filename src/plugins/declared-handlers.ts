import { HostKind, type ManifestV3, type Permissions } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';

/**
 * Returns the permissions of each declaration of the handler for a host kind, such as `rest` or `job`. Returns an empty
 * list if the manifest has no such declaration.
 */
export function declaredPermissions(manifest: ManifestV3, handler: string, host: HostKind): Permissions[] {
  const { commands, jobs, rest, webhooks, workflows, lifecycle } = manifest;
  const own = manifest.permissions;
  const found: Permissions[] = [];
  const add = (ref: string | undefined, permissions: Permissions = own): void => {
    if (ref === handler) found.push(permissions);
  };
  if (host === 'rest') for (const route of rest?.routes ?? []) add(route.handler, route.permissions);
  if (host === 'cli' || host === 'workflow' || host === 'plugin')
    for (const command of commands) add(command.handler, command.permissions);
  if (host === 'job' || host === 'workflow') for (const job of jobs) add(job.handler);
  if (host === 'job') for (const hook of Object.values(lifecycle ?? {})) add(hook);
  if (host === 'workflow') for (const { handler: ref } of workflows) add(ref as string | undefined);
  for (const webhook of webhooks) {
    if (host === 'webhook') {
      add(webhook.handler);
      add(webhook.onProvision);
    }
    if (host === 'validator' && webhook.auth.type === 'custom') add(webhook.auth.validator);
  }
  return found;
}

/**
 * Throws HOST_MISMATCH if the manifest declares the handler only for other host kinds. This check is needed because the
 * runner cannot check the host kind of plain functions. @spec Plugin routes 7
 */
export function requireDeclaredHost(manifest: ManifestV3, handler: string, host: HostKind): void {
  if (declaredPermissions(manifest, handler, host).length > 0) return;
  const hosts = HostKind.options.filter((other) => declaredPermissions(manifest, handler, other).length > 0);
  if (hosts.length === 0) return;
  throw new PlatformError(
    'HOST_MISMATCH',
    `The manifest of ${manifest.id} declares "${handler}" for the host ${hosts.join(' or ')}, but it was called under ${host}.`,
    { details: { expected: hosts, received: host } },
  );
}
