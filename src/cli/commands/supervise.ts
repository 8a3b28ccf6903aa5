import { z } from 'zod';
import { loadConfig } from '../../kit/config/config.ts';
import { toStartFailure } from '../../kit/errors/error-message.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { systemRandom } from '../../kit/security/random.ts';
import type { SupervisorReport } from '../../supervisor/control-protocol.ts';
import { type RunningSupervisor, runSupervisor } from '../../supervisor/run-supervisor.ts';
import { onStopSignals } from '../../supervisor/stop-signals.ts';
import { defineCommand, streamed } from '../define-command.ts';
import { parsePortFlags } from './up/ports.ts';
import { parseServices } from './up/services.ts';

/** Runs the platform that `svc up -d` starts. Reports events to `svc up -d` until all services are ready. */
export const supervise = defineCommand({
  name: 'supervise',
  summary: 'Run the platform for the `svc up -d` that started this process',
  example: 'svc supervise',
  hidden: true,
  args: z.object({ port: z.array(z.string()).default([]), services: z.string().optional() }),
  async run({ port, services }, { cwd, env, globals, clock }) {
    if (!process.send) {
      throw new PlatformError('VALIDATION_ERROR', '`svc supervise` is internal. Use `svc up -d`.');
    }
    process.title = 'svc supervisor';
    const ports = parsePortFlags(port);
    try {
      let supervisor: RunningSupervisor | undefined;
      // The handlers are installed before the services start, so that a half-started platform is stopped too.
      onStopSignals({
        first: () => (supervisor ? supervisor.stop() : process.exit(1)),
        again: () => supervisor?.kill(),
      });
      supervisor = await runSupervisor({
        clock,
        random: systemRandom(),
        services: services === undefined ? undefined : parseServices(services),
        loadConfig: () =>
          loadConfig({ cwd, env, configFile: globals.config, profile: globals.profile, ports }),
        onEvent: (event) => report({ type: 'event', event }),
      });
      // Stops the platform if `svc up -d` exits before all services are ready.
      process.once('disconnect', supervisor.stop);
      await supervisor.ready;
      process.removeListener('disconnect', supervisor.stop);
      const [status, brokenPlugins] = await Promise.all([supervisor.status(), supervisor.brokenPlugins()]);
      await report({ type: 'ready', status, firstStart: supervisor.firstStart, brokenPlugins });
      await supervisor.ended;
      return streamed(0);
    } catch (error) {
      await report({ type: 'failed', error: toStartFailure('The supervisor', error) });
      return streamed(1);
    }
  },
});

/** Sends a message to `svc up -d`. Does nothing if `svc up -d` has already exited. */
function report(message: SupervisorReport): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
