import { z } from 'zod';
import { getTrace, type Trace } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { columnsOf } from '../../wrap.ts';
import { waterfall } from './waterfall.ts';

/** @spec docs/observability.md "Traces" */
export const show = defineCommand({
  name: 'traces show',
  summary: 'Show a trace as a waterfall, from the delivery or request to its runs and jobs',
  example: 'svc traces show 7d0f3a5c9be14c2f8a6e1b2d3c4f5a60',
  idField: 'traceId',
  args: z.object({
    trace: z.string().min(1).max(128).describe('trace id, from a delivery, run, job or log record'),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(1000)
      .default(500)
      .describe('number of spans; default 500, at most 1,000'),
  }),
  short: { limit: 'n' },
  run: async ({ trace, limit }, { client }) =>
    ok(await client.call(getTrace, { params: { traceId: trace }, query: { limit } })),
  text: (trace: Trace, style) => waterfall(trace, style, columnsOf(process.stdout)),
});
