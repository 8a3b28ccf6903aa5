import type { Role } from '../../contracts/index.ts';
import type { AppendLink } from '../../kit/security/audit-chain.ts';

/** A role of a subject in one namespace, or in all (`*`). `grantedAt` is in epoch ms. */
export interface RoleRecord {
  /** `client:<client id>`, `host:<host id>` or `claim:<name>=<value>`. */
  subject: string;
  namespaceId: string;
  role: Role;
  /** Host id whose calls have the role, or null for claims. */
  hostId: string | null;
  grantedBy: string;
  grantedAt: number;
}

/** Scopes of a client, whose calls have the host id. */
export interface ClientScopes {
  clientId: string;
  hostId: string;
  scopes: string[];
}

/**
 * Roles and scopes. Each change is added to the change feed, and its audit entry to the audit log, in the same
 * transaction. The lists are small, because administrators write them.
 */
export interface AccessStore {
  roles(): Promise<RoleRecord[]>;
  scopes(): Promise<ClientScopes[]>;
  /** Adds or replaces a role. Returns the replaced role, or null. */
  grant(role: RoleRecord, audit: AppendLink): Promise<Role | null>;
  /** Deletes a role. Returns false if there is no such role. */
  revoke(role: Pick<RoleRecord, 'subject' | 'namespaceId'>, audit: AppendLink): Promise<boolean>;
  /** Sets the scopes of a client. An empty list deletes them. Without `audit`, no audit entry is written. */
  setScopes(scopes: ClientScopes, audit?: AppendLink): Promise<void>;
}
