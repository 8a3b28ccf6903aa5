/** Connections of one pool of this process. */
export interface PoolUse {
  pool: 'main' | 'leases' | 'lists';
  inUse: number;
  /** Callers that wait for a free connection. */
  waiting: number;
  limit: number;
}

/** Statistics of a table. They are estimates of the server, read without scanning the table. */
export interface TableHealth {
  table: string;
  liveRows: number;
  /** Deleted or replaced rows that are not vacuumed yet. */
  deadRows: number;
  /** Bytes of the rows, including large values. */
  bytes: number;
  indexBytes: number;
  /** Time since the last vacuum in seconds. Null if the table was never vacuumed. */
  vacuumAgeSeconds: number | null;
}

export interface StandbyHealth {
  standby: string;
  /** State of synchronous replication, such as `sync` or `async`. */
  sync: string;
  /** Bytes of the write-ahead log that the standby has not replayed. Null if the user may not see them. */
  lagBytes: number | null;
}

/** State of the database. All nodes see the same values. */
export interface DatabaseHealth {
  tables: TableHealth[];
  autovacuum: boolean;
  /** Tables of the platform for which autovacuum is switched off. */
  tablesWithoutAutovacuum: string[];
  /** Age of the oldest transaction in seconds. Rows that were deleted after its start cannot be vacuumed. */
  oldestTransactionSeconds: number;
  /** Session that has been idle in a transaction for the longest time. */
  idleInTransaction: { pid: number; application: string; seconds: number } | null;
  connections: { used: number; limit: number };
  standbys: StandbyHealth[];
  /** Replication slots that no standby uses. They keep the write-ahead log, and with `xmin` also dead rows. */
  unusedSlots: string[];
  /** Age of the oldest change that a member has not read, in seconds. */
  feedLag: Array<{ member: string; seconds: number }>;
}

/** Reports the state of a shared database. */
export interface StoreMonitor {
  pools(): PoolUse[];
  health(): Promise<DatabaseHealth>;
}
