import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { PluginId } from './ids.ts';

/** What keeps a plugin, or a part of it, from being used. `path` says where in the manifest. */
export const PluginFault = z
  .object({ code: z.string(), path: z.string(), message: z.string() })
  .meta({ id: 'PluginFault' });

/** A plugin that the platform knows, whether it could be loaded or not. @spec docs/decisions.md "Marketplace records" */
export const PluginRecord = z
  .object({
    id: z.string(),
    version: z.string().nullable().describe('null when the manifest could not be read'),
    source: z.string().describe('Where it came from: "linked" for a folder of the project'),
    enabled: z.boolean(),
    status: z.enum(['loaded', 'broken', 'disabled']),
    faults: z.array(PluginFault),
    root: z.string(),
  })
  .meta({ id: 'PluginRecord' });
export type PluginRecord = z.infer<typeof PluginRecord>;

/** The same with what the plugin brings along. */
export const PluginDetail = PluginRecord.extend({
  display: z.object({ name: z.string().nullable(), description: z.string().nullable() }),
  webhooks: z.array(
    z.object({ event: z.string(), auth: z.string(), multi: z.boolean(), async: z.boolean() }),
  ),
  routes: z.array(z.object({ method: z.string(), path: z.string(), security: z.array(z.string()) })),
  commands: z.array(z.object({ id: z.string(), description: z.string().nullable() })),
  jobs: z.array(z.object({ id: z.string(), description: z.string().nullable() })),
  permissions: z.record(z.string(), z.unknown()),
}).meta({ id: 'PluginDetail' });
export type PluginDetail = z.infer<typeof PluginDetail>;

const tags = ['marketplace'];
const params = z.object({ pluginId: PluginId });

export const listPlugins = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins',
  summary: 'Installed and linked plugins, broken ones with what is wrong with them',
  tags,
  reply: page(PluginRecord),
});

export const getPlugin = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins/:pluginId',
  summary: 'One plugin and what it brings along',
  tags,
  params,
  reply: PluginDetail,
  errors: ['PLUGIN_NOT_FOUND'],
});

/** `source`: an npm name with or without a range, a tarball, a folder or a git URL. */
export const installPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins',
  summary: 'Install a plugin',
  tags,
  status: 201,
  body: z.strictObject({ source: z.string().min(1).max(2048) }),
  reply: PluginDetail,
  errors: ['VALIDATION_ERROR', 'INVALID_MANIFEST', 'PLUGIN_CONFLICT'],
});

export const uninstallPlugin = endpoint({
  method: 'DELETE',
  path: '/api/v1/marketplace/plugins/:pluginId',
  summary: 'Uninstall a plugin',
  tags,
  params,
  reply: z.object({ uninstalled: z.literal(true) }),
  errors: ['PLUGIN_NOT_FOUND'],
});
