import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { EpochMs, RunError, RunStep, WorkflowRun } from './workflow-records.ts';

/** Kind of a span. @spec docs/observability.md "Traces" */
export const SpanKind = z.enum([
  'request',
  'delivery',
  'verdict',
  'attempt',
  'handler',
  'run',
  'step',
  'job',
  'call',
  'outgoing',
]);
export type SpanKind = z.infer<typeof SpanKind>;

/** A part of a trace with its duration. Parents come before their children. */
export const TraceSpan = z
  .object({
    id: z.string().describe('Span id, as in OTLP and in log records'),
    parentId: z.string().nullable().describe('Id of another span of the reply'),
    kind: SpanKind,
    name: z.string(),
    service: z.string().describe('Service that did the work'),
    startedAt: EpochMs,
    durationMs: z.number().nullable().describe('Null until it ends'),
    status: z.enum(['open', 'ok', 'failed']),
    result: z.string().describe('HTTP status, or status of the delivery, run, step or job'),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    requestId: z.string().optional(),
    pluginId: z.string().optional(),
    deliveryId: z.string().optional(),
    runId: z.string().optional(),
    stepId: z.string().optional(),
    jobId: z.string().optional(),
    attributes: z.record(z.string(), z.union([z.string(), z.number()])),
  })
  .meta({ id: 'TraceSpan' });
export type TraceSpan = z.infer<typeof TraceSpan>;

const TraceSource = z.enum(['deliveries', 'runs', 'logs', 'events']);
export type TraceSource = z.infer<typeof TraceSource>;

export const Trace = z
  .object({
    traceId: z.string(),
    startedAt: EpochMs,
    durationMs: z.number().describe('From the start of the first span to the last known time'),
    spans: z.array(TraceSpan),
    truncated: z.boolean().describe('Whether spans are missing because of `limit` or another limit'),
    missing: z.array(TraceSource).describe('Sources that did not answer, so that their spans are missing'),
  })
  .meta({ id: 'Trace' });
export type Trace = z.infer<typeof Trace>;

export const TraceId = z.string().min(1).max(128);

/** Joins the delivery, runs, jobs, requests and events of a trace. Callers see the parts of their namespace. */
export const getTrace = endpoint({
  method: 'GET',
  path: '/api/v1/traces/:traceId',
  summary: 'Show the spans of a trace, from the request or delivery to its runs and jobs',
  tags: ['traces'],
  params: z.object({ traceId: TraceId }),
  query: z.strictObject({ limit: z.coerce.number().int().min(1).max(1000).default(500) }),
  reply: Trace,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'NOT_FOUND', 'RATE_LIMIT_EXCEEDED', 'UPSTREAM_UNAVAILABLE'],
});

/** A run or job of a trace. Steps of runs beyond a limit are left out. */
export const TracedRun = z.object({
  kind: z.enum(['workflow', 'job']),
  run: WorkflowRun.omit({ input: true, output: true }),
  requestId: z.string(),
  parentSpanId: z.string().nullable(),
  parentStep: z.string().nullable(),
  steps: z.array(RunStep.omit({ output: true })),
  error: RunError.nullable(),
});
export type TracedRun = z.infer<typeof TracedRun>;

/** Lists the runs and jobs of a trace, oldest first. The gateway does not forward requests to this internal path. */
export const listTracedRuns = endpoint({
  method: 'GET',
  path: '/internal/workflows/traces/:traceId',
  summary: 'List the runs and jobs of a trace',
  params: z.object({ traceId: TraceId }),
  reply: z.object({ runs: z.array(TracedRun), truncated: z.boolean() }),
  errors: ['FORBIDDEN'],
});
