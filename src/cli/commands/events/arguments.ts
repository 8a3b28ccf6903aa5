import { z } from 'zod';
import type { GlobalFlags } from '../../globals.ts';
import { parseSince } from '../logs/filter.ts';

export const eventFlags = {
  type: z.string().optional().describe('only events of this type'),
  source: z.string().optional().describe('only events of this product: svc, or a plugin id'),
  since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
  until: z.string().optional().describe('end: like --since'),
};

export const traceFlag = { traceId: z.string().optional().describe('only events of this trace') };

export interface EventFlags {
  traceId?: string | undefined;
  type?: string | undefined;
  source?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

export function eventQuery(
  { traceId, type, source, since, until }: EventFlags,
  { namespace }: Pick<GlobalFlags, 'namespace'>,
  now: number,
) {
  return {
    ...(traceId === undefined ? {} : { traceId }),
    ...(type === undefined ? {} : { type }),
    ...(source === undefined ? {} : { source }),
    ...(since === undefined ? {} : { from: String(parseSince(since, now, '--since')) }),
    ...(until === undefined ? {} : { to: String(parseSince(until, now, '--until')) }),
    ...(namespace === undefined ? {} : { tenantId: namespace }),
  };
}
