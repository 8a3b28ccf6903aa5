/** Adds the delivery of a run, and an index that finds the runs of a trace. */
export const RUN_TRACES = `
  alter table run add column delivery_id text;
  create index run_trace on run (tenant_id, trace_id);`;
