import { z } from 'zod';
import { findSupervisor } from '../../supervisor/control-client.ts';
import { defineCommand, ok } from '../define-command.ts';

export interface DownResult {
  /** Whether the platform was running and has been stopped. */
  stopped: boolean;
  pid: number | null;
}

/**
 * Defines `svc down`, which waits until every process has exited and the data folder is unlocked. @spec
 * docs/operations.md "svc down"
 */
export const down = defineCommand({
  name: 'down',
  summary: 'Drain and stop the platform',
  example: 'svc down',
  args: z.object({}),
  async run(_args, { folder }) {
    const supervisor = findSupervisor(folder());
    if (!supervisor) return ok<DownResult>({ stopped: false, pid: null });
    await supervisor.stop();
    return ok<DownResult>({ stopped: true, pid: supervisor.pid });
  },
  text: ({ stopped, pid }: DownResult) =>
    stopped ? `svc (pid ${pid}) has stopped.` : 'svc was not running here.',
});
