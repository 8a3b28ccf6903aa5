import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { ConnectionRecord } from '../../../../store/ports/index.ts';
import type { StoredSettings } from './connection-records.ts';
import type { ConnectionSeal } from './connection-seal.ts';

/** Returns the client secret, or null for a public client. Throws NOT_FOUND if a stored secret is missing. */
export type ReadClientSecret = (record: ConnectionRecord, settings: StoredSettings) => Promise<string | null>;

/** Stored secrets of a namespace. */
export type ReadStoredSecret = (namespaceId: string, name: string) => Promise<string | undefined>;

export function clientSecrets(seal: ConnectionSeal, readStored: ReadStoredSecret): ReadClientSecret {
  return async (record, { secretName }) => {
    if (secretName === null) return seal.openSecret(record);
    const secret = await readStored(record.namespaceId, secretName);
    if (secret === undefined) throw secretNotFound(record.namespaceId, secretName);
    return secret;
  };
}

export function secretNotFound(namespaceId: string, name: string): PlatformError {
  return new PlatformError(
    'NOT_FOUND',
    `The namespace ${namespaceId} has no secret "${name}". Store it with svc secrets set ${name}.`,
    { details: { secret: name, hint: `svc secrets set ${name}` } },
  );
}
