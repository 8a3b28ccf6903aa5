import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { RunEvent, RunId, RunLogLine, RunStep } from './workflow-records.ts';
import { getRun } from './workflows.ts';

const tags = ['workflows'];
const params = z.object({ runId: RunId });

/** Everything that is known about a run. */
export const RunExport = z
  .object({
    run: getRun.reply,
    steps: z.array(RunStep).describe('With every attempt'),
    events: z.array(RunEvent).describe('Oldest first, at most 10,000'),
    logs: z.array(RunLogLine).describe('Oldest first, at most 10,000'),
    truncated: z.boolean().describe('Whether the run has more events or log lines'),
  })
  .meta({ id: 'RunExport' });
export type RunExport = z.infer<typeof RunExport>;

export const exportRun = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/export',
  summary: 'Export a run with all its attempts, events and log lines',
  tags,
  params,
  reply: RunExport,
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

const OtlpSpan = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number().int(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) })),
  status: z.object({ code: z.number().int(), message: z.string().optional() }).optional(),
});

/** Body of a POST to `/v1/traces` of an OpenTelemetry collector. */
export const OtlpTraces = z
  .object({
    resourceSpans: z.array(
      z.object({
        resource: z.object({ attributes: OtlpSpan.shape.attributes }),
        scopeSpans: z.array(
          z.object({
            scope: z.object({ name: z.string(), version: z.string() }),
            spans: z.array(OtlpSpan),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'OtlpTraces' });
export type OtlpTraces = z.infer<typeof OtlpTraces>;

export const exportRunSpans = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/runs/:runId/otlp',
  summary: 'Export a run and its attempts as OpenTelemetry spans',
  tags,
  params,
  reply: OtlpTraces,
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});
