import type { IncomingMessage } from 'node:http';
import type { Caller } from '../../../contracts/index.ts';
import { tokenText } from '../domain/identity/bearer.ts';
import type { Counted } from '../domain/request-limits.ts';

/** Whom an authenticated request from the address `ip` counts against. */
export function countedOf({ headers }: IncomingMessage, { namespaceId }: Caller, ip: string): Counted {
  const { authorization } = headers;
  const token = authorization === undefined ? `(none) ${ip}` : tokenText(authorization);
  return { token, namespaceId, ip };
}
