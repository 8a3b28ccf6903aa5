import type { FastifyRequest } from 'fastify';
import { type Caller, HEADERS, NamespaceId } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Admins } from '../domain/identity/admins.ts';

/** The namespace a call acts on: the caller's, or the one an admin names. @spec docs/decisions.md "Acting on another namespace" */
export function scopeOf(
  admins: Admins,
  { request, caller }: { request: FastifyRequest; caller: Caller },
): string {
  return admins.scope(caller, namedNamespace(request));
}

function namedNamespace({ headers }: FastifyRequest): string | undefined {
  const sent = headers[HEADERS.namespace];
  if (sent === undefined) return undefined;
  const named = NamespaceId.safeParse(sent);
  if (named.success) return named.data;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The ${HEADERS.namespace} header ${named.error.issues[0]?.message}.`,
  );
}
