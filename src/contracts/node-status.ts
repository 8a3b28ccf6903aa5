import { z } from 'zod';
import { ServiceName } from './common.ts';
import { endpoint } from './endpoint.ts';

/** State of a service, as its supervisor reports it. */
export const NodeService = z
  .object({
    name: ServiceName,
    isRunning: z.boolean().describe('Whether the service has a process; `/ready` tells whether it serves'),
    restarts: z.number().int().describe('Restarts after crashes since the start of the platform'),
    lastExit: z
      .object({ at: z.number().describe('Epoch milliseconds'), reason: z.string() })
      .nullable()
      .describe('How the last process of the service ended'),
  })
  .meta({ id: 'NodeService' });
export type NodeService = z.infer<typeof NodeService>;

/** Shows the node whose gateway answers. Other nodes of a cluster are not included. */
export const getNodeStatus = endpoint({
  method: 'GET',
  path: '/api/v1/node',
  summary: 'Show the disk and the services of the node that answers',
  tags: ['health'],
  reply: z.object({
    disk: z
      .object({ freeBytes: z.number(), totalBytes: z.number() })
      .describe('File system of the data folder'),
    services: z.array(NodeService).describe('Empty if no supervisor runs the services'),
  }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});
