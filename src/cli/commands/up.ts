import { z } from 'zod';
import { defineCommand, ok, streamed } from '../define-command.ts';
import type { BrokenPlugin, SupervisorStatus } from '../supervisor/control-protocol.ts';
import { parsePortFlags } from './up/ports.ts';

export interface UpResult extends SupervisorStatus {
  firstStart: boolean;
  alreadyRunning: boolean;
  /** Plugins that this start left out; `svc plugins list` tells those of one that runs already. */
  brokenPlugins: BrokenPlugin[];
}

/** @spec docs/operations.md "svc up" */
export const up = defineCommand({
  name: 'up',
  summary: 'Start the platform, in the foreground or (-d) in the background',
  example: 'svc up -d --port gateway=4100',
  streams: 'without --detach',
  args: z.object({
    detach: z.boolean().default(false).describe('return once all services are ready, and leave them running'),
    port: z
      .array(z.string())
      .default([])
      .describe('the port of one service; 0 takes any free one; repeatable')
      .meta({ placeholder: 'name=n' }),
  }),
  short: { detach: 'd' },
  async run({ detach, port }, context) {
    const ports = parsePortFlags(port);
    if (detach) {
      const { startDetached } = await import('./up/detached.ts');
      return ok(await startDetached(ports, context));
    }
    const { runForeground } = await import('./up/foreground.ts');
    return streamed(await runForeground(ports, context));
  },
  /** The address alone, so that a script can take it; what runs where was told on stderr. */
  text: ({ services }: UpResult) => services.find(({ name }) => name === 'gateway')?.url ?? '',
});
