import { z } from 'zod';
import { exportRun, exportRunSpans, type OtlpTraces, type RunExport } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { RunArg } from './arguments.ts';

/** @spec docs/workflows.md "Timeline and export" */
export const exportOne = defineCommand({
  name: 'workflows export',
  summary: 'Print a run with all its attempts, events and log lines as JSON',
  example: 'svc workflows export run_01b8dac5 --otlp > spans.json',
  args: z.object({
    run: RunArg,
    otlp: z
      .boolean()
      .default(false)
      .describe('print OpenTelemetry spans, for POST /v1/traces of a collector'),
  }),
  async run({ run, otlp }, { client }) {
    const params = { runId: run };
    return otlp
      ? ok<RunExport | OtlpTraces>(await client.call(exportRunSpans, { params }))
      : ok<RunExport | OtlpTraces>(await client.call(exportRun, { params }));
  },
  text: (exported: RunExport | OtlpTraces) => JSON.stringify(exported, null, 2),
});
