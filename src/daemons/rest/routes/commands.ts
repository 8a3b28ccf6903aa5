import { getCommand, listCommands, runCommand } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { requireOperator } from '../../operator.ts';
import { commandCall, requireCommand } from '../../plugin-runtime/commands.ts';
import { userOf } from '../domain/route-security.ts';
import type { RestServices } from '../services.ts';

/** Routes for the commands of plugins, used by `svc run`. @spec docs/plugins.md "Commands" */
export function commandRoutes(http: Http, services: RestServices): void {
  const { plugins, admins, observe } = services;

  mount(http, listCommands, { auth: 'caller' }, () => ({
    items: plugins.registry.plugins.flatMap(({ id: pluginId, manifest }) =>
      manifest.commands.map(({ id, description }) => ({ pluginId, id, description: description ?? null })),
    ),
  }));

  mount(http, getCommand, { auth: 'caller' }, async ({ params }) => {
    const { plugin, command } = requireCommand(plugins.registry, params.pluginId, params.commandId);
    const described = await services.pluginRoutes.schemasOf(plugin).ofHandler(command);
    return {
      pluginId: plugin.id,
      id: command.id,
      description: command.description ?? null,
      input: described.input ?? null,
      output: described.output ?? null,
    };
  });

  mount(http, runCommand, { auth: 'caller' }, ({ params, body, caller, request, reply }) => {
    requireOperator(caller, admins, 'run commands of plugins');
    const { plugin, command } = requireCommand(plugins.registry, params.pluginId, params.commandId);
    const controller = new AbortController();
    reply.raw.once('close', () => controller.abort());
    return observe(
      'commands',
      `${plugin.id} ${command.id}`,
      () =>
        plugins.execute(
          {
            ...commandCall(command),
            plugin,
            host: 'cli',
            hostContext: { host: 'cli', command: command.id },
            input: body.input ?? {},
            params: {},
            user: userOf(caller),
            tenantId: caller.namespaceId,
            requestId: request.id,
            traceId: request.traceId,
          },
          { signal: controller.signal },
        ),
      ({ exitCode }) => exitCode !== 0,
    );
  });
}
