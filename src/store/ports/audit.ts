import type { AuditEntry } from '../../contracts/index.ts';
import type { AppendLink, SignedHead } from '../../kit/security/audit-chain.ts';

export interface AuditFilter {
  namespaceId?: string | undefined;
  actor?: string | undefined;
  /** An action, or the start of actions if the text ends with a dot. */
  action?: string | undefined;
  object?: string | undefined;
  /** Times in epoch ms. `until` is exclusive. */
  since?: number | undefined;
  until?: number | undefined;
  /** Only entries below this sequence number. */
  before?: number | undefined;
  limit: number;
}

/** The audit log, which can only grow. */
export interface AuditStore {
  /** Adds one entry. Concurrent callers add their entries one after another. `link` can be called twice. */
  append(link: AppendLink): Promise<AuditEntry>;
  /** Returns the matching entries, newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>;
  /** Returns entries above the sequence number, in ascending order. */
  after(sequence: number, limit: number): Promise<AuditEntry[]>;
  head(): Promise<SignedHead | undefined>;
}
