import { z } from 'zod';
import { SERVICE_NAMES } from '../../contracts/index.ts';
import { version } from '../../kit/files/paths.ts';
import { findSupervisor } from '../../supervisor/control-client.ts';
import type { SupervisorStatus } from '../../supervisor/control-protocol.ts';
import { defineCommand, ok } from '../define-command.ts';
import { notRunning } from '../not-running.ts';
import { serviceNamed } from '../service-named.ts';
import { statusText } from './status/service-table.ts';

/** @spec docs/operations.md "svc restart" */
export const restart = defineCommand({
  name: 'restart',
  summary: 'Restart one or all services with the current config',
  example: 'svc restart gateway',
  args: z.object({
    service: z
      .string()
      .optional()
      .describe(`one of ${SERVICE_NAMES.join(', ')}; default: all`),
  }),
  positionals: ['service'],
  async run({ service }, context) {
    const { folder, ui } = context;
    const name = service === undefined ? null : serviceNamed(service);
    const supervisor = findSupervisor(folder());
    if (!supervisor) throw notRunning(context);
    const status = await supervisor.restart(name);
    if (status.version !== version)
      ui.warn(
        `The supervisor still runs version ${status.version}. Run svc down && svc up -d to update it to ${version}.`,
      );
    return ok(status);
  },
  text: (result: SupervisorStatus, style) => statusText(result, style),
});
