import type { FastifyRequest } from 'fastify';
import { type Caller, HEADERS, NamespaceId } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';

/** The namespace a call acts on: the caller's own, or for an admin the one named in `x-svc-namespace`. */
export type ActingNamespace = (request: Pick<FastifyRequest, 'headers'>, caller: Caller) => NamespaceId;

export function createActingNamespace(admins: readonly string[]): ActingNamespace {
  return (request, caller) => {
    const named = NamespaceId.safeParse(request.headers[HEADERS.namespace] ?? caller.namespaceId);
    if (!named.success) {
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The ${HEADERS.namespace} header ${named.error.issues[0]?.message}.`,
      );
    }
    if (named.data !== caller.namespaceId && !admins.includes(caller.hostId)) {
      throw new PlatformError(
        'FORBIDDEN',
        `Your token is for namespace "${caller.namespaceId}"; only admins may act on "${named.data}".`,
      );
    }
    return named.data;
  };
}
