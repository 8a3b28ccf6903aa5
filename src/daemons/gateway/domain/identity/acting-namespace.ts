import type { IncomingHttpHeaders } from 'node:http';
import { type Caller, HEADERS, NamespaceId } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Admins } from './admins.ts';

/**
 * Returns the caller with the namespace it acts for. Administrators may choose another namespace by the header
 * `x-svc-namespace`. Other callers that set this header get 403.
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
