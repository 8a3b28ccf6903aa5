import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { ConnectionKey, ConnectionRecord } from '../../../../store/ports/index.ts';
import { lastErrorOf } from './connection-records.ts';

export function connectionNotFound({ name }: Pick<ConnectionKey, 'name'>): PlatformError {
  return new PlatformError(
    'NOT_FOUND',
    `The namespace has no connection "${name}". Create it with svc connections create ${name}.`,
    { details: { connection: name, hint: `svc connections create ${name} --provider <provider>` } },
  );
}

/** Returns the error of a connection that only a person can mend. */
export function notAuthorized(record: ConnectionRecord): PlatformError {
  const { name, status } = record;
  const reason = lastErrorOf(record);
  const why = {
    pending: 'is not authorized yet',
    active: 'has expired, and the provider gave no refresh token',
    failed: `must be authorized again${reason ? ` (${reason.code})` : ''}`,
    revoked: 'was revoked',
  }[status];
  return new PlatformError(
    'CONNECTION_NOT_AUTHORIZED',
    `The connection "${name}" ${why}. Run svc connections authorize ${name}, and open the link.`,
    {
      details: {
        connection: name,
        status,
        ...(reason ? { reason: reason.code } : {}),
        hint: `svc connections authorize ${name}`,
      },
    },
  );
}

/** Returns the error of a connection whose provider does not refresh the token at the moment. */
export function unavailable(record: ConnectionRecord, now: number): PlatformError {
  const { name, refreshAt } = record;
  const reason = lastErrorOf(record);
  const retryAfter = Math.max(1, Math.ceil(((refreshAt ?? now) - now) / 1000));
  return new PlatformError(
    'CONNECTION_UNAVAILABLE',
    `The access token of the connection "${name}" has expired, and the provider did not refresh it: ${reason?.message ?? 'it does not answer.'} Try again in ${retryAfter} s.`,
    {
      details: {
        connection: name,
        ...(reason ? { reason: reason.code } : {}),
        retryAfterSeconds: retryAfter,
        hint: `svc connections show ${name}`,
      },
      headers: { 'retry-after': String(retryAfter) },
    },
  );
}

/** Returns the error of a connection that another process refreshes, or was killed while it did. */
export function beingRefreshed({ name }: ConnectionRecord): PlatformError {
  return new PlatformError(
    'CONNECTION_UNAVAILABLE',
    `Another process refreshes the connection "${name}", or was killed meanwhile. Try again in a minute.`,
    { details: { connection: name }, headers: { 'retry-after': '60' } },
  );
}
