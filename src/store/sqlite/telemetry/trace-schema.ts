/** Trace id of an event. SQLite uses the index only if the query contains exactly this expression. */
export const EVENT_TRACE_ID = `ctx ->> '$.traceId'`;

/** Adds an index that finds the events of a trace. */
export const EVENT_TRACES = `
  create index event_trace on event (${EVENT_TRACE_ID}, ts);`;
