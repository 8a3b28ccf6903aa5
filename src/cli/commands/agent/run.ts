import { resolve } from 'node:path';
import { z } from 'zod';
import { startAgent } from '../../../agent/index.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import { createLogger } from '../../../kit/telemetry/logger.ts';
import { BufferedOutput } from '../../../kit/telemetry/output.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../kit/time/duration.ts';
import { onStopSignals } from '../../../supervisor/stop-signals.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { loadRecordFormat } from '../../log-format.ts';
import { homeFlag, registeredAgent } from './registration.ts';

/** Runs the agent until SIGTERM or SIGINT, then finishes running executions. @spec Gateway: host agents */
export const run = defineCommand({
  name: 'agent run',
  summary: 'Connect this machine to its gateway and run plugin code for it',
  example: 'svc agent run --max-processes 4',
  streams: 'always',
  args: z.object({
    plugins: z
      .array(z.string().min(1))
      .default([])
      .describe('folder or glob of local plugins, repeatable; others are downloaded from the gateway'),
    maxProcesses: z.coerce.number().int().min(1).max(64).optional().describe('per plugin; default 2'),
    memoryMb: z.coerce.number().int().min(32).optional().describe('per process; default 256'),
    sandbox: z
      .enum(['auto', 'bwrap', 'permission'])
      .optional()
      .describe('sandbox of plugin code; default auto: bwrap where it works'),
    drainSeconds: z.coerce
      .number()
      .int()
      .min(0)
      .max(3600)
      .default(30)
      .describe('time for running executions to finish after SIGTERM'),
    home: homeFlag,
  }),
  async run({ plugins, maxProcesses, memoryMb, sandbox, drainSeconds, home }, { env, cwd, ui, globals }) {
    const { folder, identity } = await registeredAgent(home, { cwd, env });
    const format = ui.interactive && !globals.json ? await loadRecordFormat(ui.out) : null;
    const output = format
      ? { write: (line: string) => ui.line(format(line.trimEnd())), flush: () => {} }
      : new BufferedOutput(1, systemClock, (count) =>
          logger.warn(`${count} log lines were dropped, because the reader is too slow`),
        );
    const logger = createLogger({
      serviceId: 'agent',
      output,
      clock: systemClock,
      ...(globals.debug ? { level: 'debug' } : {}),
    });
    process.title = `svc agent ${identity.name}`;
    // Keeps the process alive between two connection attempts. The timers of `systemClock` do not keep a process alive.
    const alive = setInterval(() => {}, minutes(1));
    try {
      const agent = await startAgent({
        identity,
        home: folder,
        pluginFolders: plugins.map((path) => resolve(cwd, path)),
        worker: {
          ...(maxProcesses ? { maxProcesses } : {}),
          ...(memoryMb ? { memoryMb } : {}),
          ...(sandbox ? { sandbox } : {}),
        },
        drainMs: seconds(drainSeconds),
        clock: systemClock,
        random: systemRandom(),
        logger,
      });
      onStopSignals({ first: () => agent.stop(), again: () => process.exit(130) });
      await agent.finished;
      return streamed(0);
    } finally {
      clearInterval(alive);
      output.flush();
    }
  },
});
