/**
 * Trace id of an event. A regular expression is used, because a conversion to JSON would refuse events whose context
 * contains a null character.
 */
export const EVENT_TRACE_ID = `substring(ctx from '"traceId":"([^"\\\\]{1,128})"')`;

/** Adds the delivery of a run, and indexes that find the deliveries, runs and events of a trace. */
export const TRACES = `
  alter table svc.run add column delivery_id text;
  create index run_trace on svc.run (tenant_id, trace_id, seq);
  create index delivery_trace on svc.delivery (namespace_id, trace_id, position);
  create index event_trace on svc.event ((${EVENT_TRACE_ID}), ts, id);`;
