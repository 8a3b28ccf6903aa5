import { z } from 'zod';
import { getTrace, LogRecord, queryLogs } from '../../../../contracts/index.ts';
import { platformTool } from '../platform-tool.ts';
import type { Tool } from '../tool.ts';
import { Limit, Time } from './deliveries.ts';

export const recordTools: readonly Tool[] = [
  platformTool({
    name: 'logs_search',
    title: 'Search logs',
    description: 'Finds stored log lines, newest first.',
    needs: 'viewer',
    input: z.strictObject({
      level: LogRecord.shape.level.optional().describe('This level and above'),
      search: z.string().min(1).max(256).optional().describe('Words of the message'),
      pluginId: z.string().max(214).optional(),
      runId: z.string().max(128).optional(),
      traceId: z.string().max(128).optional(),
      requestId: z.string().max(128).optional(),
      from: Time,
      to: Time,
      limit: Limit,
      offset: z.number().int().min(0).default(0),
    }),
    run: (query, { call }) => call(queryLogs, { query }),
  }),
  platformTool({
    name: 'trace_show',
    title: 'Show a trace',
    description: 'Shows the spans of a trace: the request or delivery, its handlers, runs, steps and calls.',
    needs: 'viewer',
    input: z.strictObject({
      traceId: z.string().min(1).max(128),
      limit: z.number().int().min(1).max(500).default(100),
    }),
    run: ({ traceId, limit }, { call }) => call(getTrace, { params: { traceId }, query: { limit } }),
  }),
];
