import type { Generated } from 'kysely';
import type { AuditEntry } from '../../contracts/index.ts';
import type { SignedHead } from '../../kit/security/audit-chain.ts';
import type { EndpointRow } from '../message-rows.ts';
import type {
  ClientRecord,
  HostRecord,
  MintedTokenRecord,
  RefreshTokenRecord,
  Revocation,
  RoleRecord,
  SecretRecord,
  VaultVersion,
} from '../ports/index.ts';

interface KeyValueRow {
  scope: string;
  key: string;
  /** The value as JSON. */
  value: string;
  expiresAt: number | null;
}

/** Columns of all tables. Column names are `camelCase` in the code and `snake_case` in PostgreSQL. */
export interface Tables {
  cacheEntry: KeyValueRow;
  stateEntry: KeyValueRow;
  stateEntryUsage: { scope: string; keys: number; bytes: number };
  stateObject: { id: Generated<number>; scope: string; key: string; bytes: number; modifiedAt: number };
  stateObjectChunk: { objectId: number; n: number; data: Buffer };
  stateObjectUsage: { scope: string; bytes: number };
  client: ClientRecord;
  refreshToken: RefreshTokenRecord;
  host: Omit<HostRecord, 'capabilities' | 'labels' | 'metadata'> & {
    /** `capabilities`, `labels` and `metadata` are stored as JSON. */
    capabilities: string;
    labels: string;
    metadata: string;
    /** Fence token of the member to which the host is connected. */
    owner: number | null;
  };
  mintedToken: MintedTokenRecord;
  revocation: Omit<Revocation, 'sequence'> & { sequence: Generated<number> };
  accessRole: RoleRecord;
  /** `scopes` is stored as JSON. */
  clientScopes: { clientId: string; hostId: string; scopes: string };
  auditEntry: AuditEntry;
  auditHead: SignedHead & { id: number };
  queueSetting: { namespaceId: string; name: string; settings: string };
  outgoingEndpoint: EndpointRow;
  secret: VaultVersion & { sealed: string | null };
  webhookSecret: Omit<SecretRecord, 'lapsed'>;
  schemaVersion: { version: number; minVersion: number; appliedAt: Generated<Date> };
}
