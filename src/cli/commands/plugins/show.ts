import { z } from 'zod';
import { getPlugin, Permissions, type PluginDetail, PluginId } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { pairs } from '../../table.ts';
import { sourceLabel } from './source-label.ts';

/** @spec REST API: marketplace */
export const show = defineCommand({
  name: 'plugins show',
  summary: 'Show a plugin with its contributions and permissions',
  example: 'svc plugins show github',
  args: z.object({ plugin: PluginId.describe('plugin id') }),
  run: async ({ plugin }, { client }) => ok(await client.call(getPlugin, { params: { pluginId: plugin } })),
  text: pluginText,
});

export function pluginText(plugin: PluginDetail, style: Style): string {
  const {
    routes,
    webhooks,
    commands,
    jobs,
    workflows,
    startsItself,
    permissions,
    faults,
    keptVersion,
    manifestModule,
    mcpServer,
  } = plugin;
  const lines = (items: string[], between = ', ') => (items.length === 0 ? '-' : items.join(between));
  return pairs(
    [
      ['plugin', `${plugin.id} ${plugin.version ?? ''}`.trim()],
      [
        'status',
        keptVersion === null ? plugin.status : `${plugin.status}; version ${keptVersion} keeps running`,
      ],
      ['source', `${plugin.origin}, ${sourceLabel(plugin.source)}`],
      ['folder', plugin.root],
      ...(manifestModule === null
        ? []
        : [
            ['manifest', `code (${manifestModule}), executed in the sandbox at each load`] as [
              string,
              string,
            ],
          ]),
      ...(mcpServer === null
        ? []
        : [
            ['MCP server', mcpServer.url ?? `${mcpServer.package} ${mcpServer.version}`] as [string, string],
            ['approved tools', lines(mcpServer.tools.map(({ name }) => name))] as [string, string],
          ]),
      [
        'routes',
        lines(
          routes.map(({ method, path }) => `${method} ${path}`),
          '\n',
        ),
      ],
      ['webhooks', lines(webhooks.map(({ event, auth }) => `${event} (${auth})`))],
      ['commands', lines(commands.map(({ id }) => id))],
      ['jobs', lines(jobs.map(({ id }) => id))],
      ['workflows', lines(workflows.map(({ id, refused }) => (refused ? `${id} (refused)` : id)))],
      [
        'runs automatically',
        lines(
          startsItself.map(({ what, name, when }) => `${what} ${name}: ${when}`),
          '\n',
        ),
      ],
      ['permissions', permissionsText(permissions)],
      ...faults.map(({ path, message }): [string, string] => [
        'fault',
        path === '' ? message : `${path}: ${message}`,
      ]),
    ],
    style,
  );
}

/** Lists permissions beyond the plugin's own folder. The permission to start programs implies all other permissions. */
function permissionsText(permissions: PluginDetail['permissions']): string {
  const known = Permissions.safeParse(permissions);
  if (!known.success) return JSON.stringify(permissions);
  const { fs, network, env, secrets = [], platform, invoke } = known.data;
  if (platform?.childProcess === true)
    return 'EVERYTHING: it may start other programs, which the sandbox cannot restrict';
  const granted = Object.entries(platform ?? {}).filter(([, isGranted]) => Boolean(isGranted));
  const lists: Array<[string, readonly string[]]> = [
    ['reads', fs?.read ?? []],
    ['writes', fs?.write ?? []],
    ['network', network],
    ['environment', env],
    ['secrets', secrets],
    ['invokes', invoke],
    ['uses', granted.map(([name, value]) => (value === true ? name : `${name} (${value})`))],
  ];
  const parts = lists
    .filter(([, names]) => names.length > 0)
    .map(([what, names]) => `${what} ${names.join(', ')}`);
  return parts.length === 0 ? 'none' : parts.join('; ');
}
