import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, getConnection } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { CommandContext } from '../../context.ts';

const POLL_MS = 1000;

type Authorizing = Connection & { authorizeUrl: string; authorizeUrlExpiresAt: number };

/**
 * Prints the link and waits until a person has authorized the connection. Throws CONNECTION_NOT_AUTHORIZED if the
 * provider refuses, or if the link expires.
 */
export async function awaitAuthorization(
  { name, authorizeUrl, authorizeUrlExpiresAt, authorizedAt, lastError }: Authorizing,
  { client, ui, clock }: Pick<CommandContext, 'client' | 'ui' | 'clock'>,
): Promise<Connection> {
  ui.warn(`Open this link in a browser within ten minutes:\n${authorizeUrl}`);
  ui.note('Waiting for the authorization. Ctrl-C stops waiting, and the link stays valid.');
  while (clock.now() < authorizeUrlExpiresAt) {
    await sleep(POLL_MS);
    const current = await client.call(getConnection, { params: { name } }).catch(ifTransient);
    if (!current) continue;
    if (current.authorizedAt !== null && current.authorizedAt !== authorizedAt) return current;
    const error = current.lastError;
    if (error && error.at !== lastError?.at) throw notAuthorized(name, error.message);
  }
  throw notAuthorized(name, 'The link has expired after ten minutes.');
}

/** Codes of a gateway that restarts. The link stays valid meanwhile. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'SERVICE_UNAVAILABLE',
]);

/** Returns undefined for an error that ends by itself. Throws any other error. */
function ifTransient(error: unknown): undefined {
  if (error instanceof PlatformError && TRANSIENT.has(error.code)) return undefined;
  throw error;
}

function notAuthorized(name: string, message: string): PlatformError {
  return new PlatformError('CONNECTION_NOT_AUTHORIZED', `"${name}" was not authorized. ${message}`, {
    details: { hint: `svc connections authorize ${name}` },
  });
}
