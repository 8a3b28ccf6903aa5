import type { IncomingHttpHeaders } from 'node:http';
import { type Caller, HEADERS, NamespaceId } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Admins } from './admins.ts';

/**
 * Returns the caller with the namespace of the request. Administrators can select another namespace with the
 * `x-svc-namespace` header. Other callers get 403 if the header names another namespace.
 */
export function actingNamespace<Who extends Caller>(
  headers: IncomingHttpHeaders,
  caller: Who,
  admins: Admins,
): Who {
  const asked = headers[HEADERS.namespace];
  if (asked === undefined || asked === caller.namespaceId) return caller;
  const named = NamespaceId.safeParse(asked);
  if (!named.success) {
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The ${HEADERS.namespace} header ${named.error.issues[0]?.message}.`,
    );
  }
  return { ...caller, namespaceId: admins.scope(caller, named.data) };
}
