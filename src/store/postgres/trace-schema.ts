import type { ConcurrentIndex } from './concurrent-index.ts';

/**
 * Trace id of an event. A regular expression is used, because a conversion to JSON would refuse events whose context
 * contains a null character.
 */
export const EVENT_TRACE_ID = `substring(ctx from '"traceId":"([^"\\\\]{1,128})"')`;

/** Adds the delivery of a run. */
export const RUN_DELIVERIES = 'alter table svc.run add column delivery_id text;';

/** Indexes that find the runs, deliveries and events of a trace. */
export const RUN_TRACE: ConcurrentIndex = {
  name: 'run_trace',
  table: 'run',
  columns: 'tenant_id, trace_id, seq',
};
export const DELIVERY_TRACE: ConcurrentIndex = {
  name: 'delivery_trace',
  table: 'delivery',
  columns: 'namespace_id, trace_id, position',
};
export const EVENT_TRACE: ConcurrentIndex = {
  name: 'event_trace',
  table: 'event',
  columns: `(${EVENT_TRACE_ID}), ts, id`,
};
