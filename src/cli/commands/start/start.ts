import { z } from 'zod';
import { SERVICE_NAMES } from '../../../contracts/index.ts';
import { onStopSignals } from '../../../supervisor/stop-signals.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { EXIT } from '../../exit-codes.ts';
import { serviceNamed } from '../../service-named.ts';
import { restartWithFlags } from './restart-with-flags.ts';

/** @spec docs/scale-out.md "One process per service" */
export const start = defineCommand({
  name: 'start',
  summary: 'Run one service in this process, for containers and service managers',
  example: 'svc start rest --host 0.0.0.0 --advertise http://10.0.0.5:5050',
  streams: 'always',
  args: z.object({
    service: z.string().describe(`one of ${SERVICE_NAMES.join(', ')}`),
    host: z.string().min(1).optional().describe('address to listen on; default: the config').meta({
      placeholder: 'address',
    }),
    port: z.coerce
      .number()
      .int()
      .min(0)
      .max(65535)
      .optional()
      .describe('port to listen on, 0 for any free one; default: the config'),
    advertise: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('URL at which other nodes reach this process')
      .meta({ placeholder: 'url' }),
  }),
  async run({ service, ...listening }, context) {
    const name = serviceNamed(service);
    restartWithFlags(name);
    // Linux ignores signals without a handler that are sent to process 1, and loading the service takes a moment.
    const onConnected = onStopSignals({ first: () => process.exit(EXIT.done), again: () => {} });
    const { runService } = await import('./run-service.ts');
    return streamed(await runService({ name, ...listening, onConnected }, context));
  },
});
