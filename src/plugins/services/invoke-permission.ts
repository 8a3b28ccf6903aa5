import type { ExecutionRequest } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';

/** Returns the plugin id in a reference of the form `<plugin>/<command>` or `<plugin>/<job>`. */
export function pluginOf(ref: string): string {
  return ref.slice(0, ref.lastIndexOf('/'));
}

export function mayInvoke({ permissions }: ExecutionRequest, ref: string): boolean {
  return permissions.invoke.includes(ref) || permissions.invoke.includes(pluginOf(ref));
}

/**
 * Throws PERMISSION_DENIED if `permissions.invoke` does not list the command or job. The error names the missing entry.
 */
export function requireInvoke(request: ExecutionRequest, ref: string): void {
  if (mayInvoke(request, ref)) return;
  throw new PlatformError(
    'PERMISSION_DENIED',
    `The plugin ${request.plugin.id} may not invoke ${ref}: its manifest must list "${ref}" under permissions.invoke.`,
    { details: { permission: 'permissions.invoke', command: ref } },
  );
}
