import type { SealedKey } from './sealed-secrets.ts';

/** A table with columns that contain sealed values. All such tables are in the gateway's database. */
export interface SealedColumns {
  table: string;
  /** Columns of the primary key, in order. Other columns of the row do not belong to the context. */
  key: readonly string[];
  /** Columns with sealed values. A value can be null. */
  columns: readonly string[];
  /** Returns the encryption context of the values. It names the purpose and the row, so that values cannot be swapped. */
  context(key: SealedKey, column: string): string;
  /** Names the value in messages. The name starts with "The". */
  describe(key: SealedKey): string;
  /** Says how an administrator removes a damaged value. */
  repair: string;
  /** SQL condition of the rows that `svc keys status` and `svc doctor` count. Default: all rows. */
  counted?: string;
  /** Returns the text that replaces a damaged value, for values that no command can remove. */
  replacement?(key: SealedKey): string | undefined;
}

/** Namespace and event of the keys that encrypt stored headers. No tenant has an empty name. */
export const RECORD_KEY = { namespace_id: '', event: 'record-key' } as const;

/** Replaces a damaged key of stored headers. */
export const LOST_KEY = 'null';

/** Returns whether a row of the webhook secrets is a key for stored headers. */
export function isRecordKeyRow(namespaceId: string, event: string): boolean {
  return namespaceId === RECORD_KEY.namespace_id && event === RECORD_KEY.event;
}

/**
 * All columns with values sealed by the master key. `svc keys rotate` encrypts them again, and `svc keys status` and
 * `svc doctor` count them. A value that is missing here is lost at the next rotation.
 */
export const SEALED_COLUMNS: readonly SealedColumns[] = [
  {
    table: 'webhook_secret',
    key: ['namespace_id', 'plugin_id', 'event', 'instance_id'],
    columns: ['current', 'previous'],
    context: (key) =>
      JSON.stringify(['webhook', key.namespace_id, key.plugin_id, key.event, key.instance_id]),
    describe: (key) => `The secret of webhook ${key.plugin_id} ${key.event} in namespace ${key.namespace_id}`,
    repair: 'revoke it with svc webhooks revoke',
    counted: `namespace_id <> '${RECORD_KEY.namespace_id}'`,
    replacement: (key) =>
      isRecordKeyRow(String(key.namespace_id), String(key.event)) ? LOST_KEY : undefined,
  },
  {
    table: 'connection',
    key: ['namespace_id', 'name'],
    columns: ['sealed_secret', 'sealed_tokens'],
    context: (key, column) => JSON.stringify(['connection', column, key.namespace_id, key.name]),
    describe: (key) => `The connection ${key.name} in namespace ${key.namespace_id}`,
    repair: 'delete it with svc connections delete',
  },
  {
    table: 'alert_setting',
    key: ['kind', 'namespace_id', 'name'],
    columns: ['sealed'],
    context: (key) => JSON.stringify(['alert', key.kind, key.namespace_id, key.name]),
    describe: (key) => `The secret of the alert channel ${key.name} in namespace ${key.namespace_id}`,
    repair: 'delete it with svc alerts delete-channel',
  },
  {
    table: 'outgoing_endpoint',
    key: ['id'],
    columns: ['headers', 'secret', 'previous_secret'],
    // A rotation moves the secret to the other column as it is.
    context: (key, column) =>
      JSON.stringify(['endpoint', column === 'headers' ? 'headers' : 'secret', key.id]),
    describe: (key) => `The secret or the headers of endpoint ${key.id}`,
    repair: 'rotate the secret with svc endpoints rotate, or set the headers again',
  },
  {
    table: 'secret',
    key: ['namespace_id', 'name', 'version'],
    columns: ['sealed'],
    context: (key) => JSON.stringify(['secret', key.namespace_id, key.name, key.version]),
    describe: (key) => `The secret ${key.name} of namespace ${key.namespace_id}`,
    repair: 'revoke it with svc secrets revoke',
  },
];

/** Returns the entry of a table. */
export function sealedColumns(table: string): SealedColumns {
  const found = SEALED_COLUMNS.find((columns) => columns.table === table);
  if (!found) throw new Error(`SEALED_COLUMNS has no table ${table}.`);
  return found;
}
