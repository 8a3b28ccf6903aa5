import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** Reloads the plugins in another gateway process of the same node. */
export const rereadInProcess = endpoint({
  method: 'POST',
  path: '/internal/processes/reread',
  summary: 'Reload the plugins in this process only',
  reply: z.object({ reread: z.literal(true) }),
  errors: ['FORBIDDEN'],
});

/**
 * Returns the metrics of one gateway process. Each process reads the metrics of the other processes on its node, so
 * that each process can report all metrics.
 */
export const processMetrics = endpoint({
  method: 'GET',
  path: '/internal/processes/metrics',
  summary: 'Return the metrics of this process only',
  reply: z.object({ metrics: z.array(z.unknown()) }),
  errors: ['FORBIDDEN'],
});
