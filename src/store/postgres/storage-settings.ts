interface TableSettings {
  tables: string[];
  settings: string[];
}

/** Vacuums a table after this share of its rows has changed. The default of 0.2 is too rare for tables with millions of rows. */
const SHARE = 0.02;

/**
 * Settings of autovacuum and of free space by table. Updates need free space in the page (`fillfactor`) to leave the
 * indexes alone. This works only in tables whose indexes do not contain a changed column.
 */
const SETTINGS: TableSettings[] = [
  // Each delivery and run is updated several times, and claims read past dead rows of their indexes. The status is in
  // indexes, so free space would not help.
  {
    tables: ['delivery', 'delivery_marker', 'run', 'job', 'idempotency_key'],
    settings: [`autovacuum_vacuum_scale_factor = ${SHARE}`, `autovacuum_analyze_scale_factor = ${SHARE}`],
  },
  // A step is updated at each change of its status, and only its primary key is indexed.
  { tables: ['step'], settings: ['fillfactor = 70', `autovacuum_vacuum_scale_factor = ${SHARE}`] },
  // Retention deletes bodies in the order of their insertion. Larger bodies are in the TOAST table.
  {
    tables: ['delivery_body'],
    settings: [
      `autovacuum_vacuum_scale_factor = ${SHARE}`,
      `toast.autovacuum_vacuum_scale_factor = ${SHARE}`,
    ],
  },
  // Rows are only inserted and deleted by retention.
  {
    tables: ['attempt', 'run_event', 'run_log', 'run_inbox', 'event_count'],
    settings: ['autovacuum_vacuum_scale_factor = 0.05'],
  },
  // Small tables whose rows change all the time: leases, read positions, usage and counters. Their size must not decide.
  {
    tables: ['member', 'boot', 'run_usage', 'state_entry_usage', 'state_object_usage'],
    settings: ['fillfactor = 50', ...everyRows(500)],
  },
  { tables: ['delivery_usage', 'feed', 'telemetry_position', 'telemetry_writer'], settings: everyRows(500) },
  { tables: ['telemetry_count', 'rate_count', 'cache_entry'], settings: everyRows(2000) },
];

function everyRows(rows: number): string[] {
  return [`autovacuum_vacuum_threshold = ${rows}`, 'autovacuum_vacuum_scale_factor = 0'];
}

/** Applies the settings. The statement blocks neither readers nor writers. */
export const STORAGE_SETTINGS = SETTINGS.flatMap(({ tables, settings }) =>
  tables.map((table) => `alter table svc.${table} set (${settings.join(', ')});`),
).join('\n  ');

/** Tables in which work waits, for the metrics of queue tables. */
export const QUEUE_TABLES = [
  'delivery',
  'delivery_body',
  'delivery_marker',
  'run',
  'job',
  'step',
  'run_inbox',
  'idempotency_key',
  'cache_entry',
  'feed',
  'member',
] as const;
