import { z } from 'zod';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { parsePortFlags } from './ports.ts';
import { parseServices } from './services.ts';
import type { UpResult } from './up-result.ts';

/** @spec docs/operations.md "svc up" */
export const up = defineCommand({
  name: 'up',
  summary: 'Start the platform, in the foreground or with -d in the background',
  example: 'svc up -d --port gateway=4100',
  streams: 'without --detach',
  args: z.object({
    detach: z.boolean().default(false).describe('run in the background; return when all services are ready'),
    port: z
      .array(z.string())
      .default([])
      .describe('port of a service, 0 for any free one; repeatable')
      .meta({ placeholder: 'name=n' }),
    services: z
      .string()
      .optional()
      .describe('run only these services on this node, such as gateway,rest; default: all')
      .meta({ placeholder: 'names' }),
  }),
  short: { detach: 'd' },
  async run({ detach, port, services }, context) {
    const selection = {
      ports: parsePortFlags(port),
      services: services === undefined ? undefined : parseServices(services),
    };
    if (detach) {
      const { startDetached } = await import('./detached.ts');
      return ok(await startDetached(selection, context));
    }
    const { runForeground } = await import('./foreground.ts');
    return streamed(await runForeground(selection, context));
  },
  /** Prints only the gateway URL, for scripts: empty on a node without a gateway. Details are on stderr. */
  text: ({ services }: UpResult) => services.find(({ name }) => name === 'gateway')?.url ?? '',
});
