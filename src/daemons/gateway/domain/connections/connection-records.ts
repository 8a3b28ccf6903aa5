import { z } from 'zod';
import { ClientAuthMethod } from '../../../../contracts/index.ts';
import type { ConnectionId, ConnectionRecord } from '../../../../store/ports/index.ts';

/** Settings of a connection as stored. The endpoints are complete, so that a use needs no discovery. */
export const StoredSettings = z.object({
  provider: z.string().nullable(),
  issuer: z.string().nullable(),
  authorizationUrl: z.string(),
  tokenUrl: z.string(),
  revocationUrl: z.string().nullable(),
  clientId: z.string(),
  /** Name of a stored secret, if the client secret is not in the record. */
  secretName: z.string().nullable(),
  clientAuth: ClientAuthMethod,
  scopes: z.array(z.string()),
  scopeSeparator: z.string(),
  pkce: z.boolean(),
  authorizationParams: z.record(z.string(), z.string()),
  tokenLifetimeSeconds: z.number().nullable(),
});
export type StoredSettings = z.infer<typeof StoredSettings>;

/** Plain content of the sealed tokens. */
export const Tokens = z.object({ accessToken: z.string(), refreshToken: z.string().nullable() });
export type Tokens = z.infer<typeof Tokens>;

/** Why the last authorization or refresh failed. */
export const LastError = z.object({ code: z.string(), message: z.string(), at: z.number() });
export type LastError = z.infer<typeof LastError>;

export const settingsOf = ({ settings }: Pick<ConnectionRecord, 'settings'>): StoredSettings =>
  StoredSettings.parse(JSON.parse(settings));

export const lastErrorOf = ({ lastError }: Pick<ConnectionRecord, 'lastError'>): LastError | null =>
  lastError === null ? null : LastError.parse(JSON.parse(lastError));

export const idOf = ({ namespaceId, name, id }: ConnectionId): ConnectionId => ({ namespaceId, name, id });
