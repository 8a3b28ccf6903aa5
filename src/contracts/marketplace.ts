import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { PluginId } from './ids.ts';
import { PluginOrigin } from './lock-file.ts';

/** A problem that disables a plugin or part of a plugin. `path` is the location of the problem in the manifest. */
export const PluginFault = z
  .object({ code: z.string(), path: z.string(), message: z.string() })
  .meta({ id: 'PluginFault' });

/**
 * An installed, linked or project plugin. Plugins that failed to load are included. @spec docs/plugins.md "Installing"
 */
export const PluginRecord = z
  .object({
    id: z.string(),
    version: z.string().nullable().describe('null if the manifest could not be read'),
    origin: PluginOrigin.describe('installed, linked, or matched by the config ("project")'),
    source: z.string().describe('As requested: a name and range, a path, a URL'),
    resolved: z.string().nullable().describe('Result of resolving `source`: a version, a commit, a path'),
    enabled: z.boolean(),
    status: z.enum(['loaded', 'broken', 'disabled']),
    faults: z.array(PluginFault),
    keptVersion: z
      .string()
      .nullable()
      .describe('For a broken plugin: the last good version, which keeps running; null if there is none'),
    root: z.string(),
    integrity: z.string().nullable().describe('Hash over all files; null if files may change'),
    installedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'PluginRecord' });
export type PluginRecord = z.infer<typeof PluginRecord>;

/** A plugin record with everything the plugin contributes. */
export const PluginDetail = PluginRecord.extend({
  display: z.object({ name: z.string().nullable(), description: z.string().nullable() }),
  webhooks: z.array(
    z.object({ event: z.string(), auth: z.string(), multi: z.boolean(), async: z.boolean() }),
  ),
  routes: z.array(z.object({ method: z.string(), path: z.string(), security: z.array(z.string()) })),
  commands: z.array(z.object({ id: z.string(), description: z.string().nullable() })),
  jobs: z.array(z.object({ id: z.string(), description: z.string().nullable() })),
  workflows: z.array(
    z.object({
      id: z.string(),
      name: z.string().nullable(),
      code: z.boolean().describe('Whether its steps are written in code'),
      refused: z.boolean().describe('Whether its definition is invalid, so that it cannot start'),
    }),
  ),
  startsItself: z
    .array(
      z.object({
        what: z.enum(['schedule', 'event', 'hook', 'validator']),
        name: z.string(),
        when: z.string(),
      }),
    )
    .describe('Code that runs without a user request'),
  permissions: z.record(z.string(), z.unknown()),
  mcpServer: z
    .object({
      package: z.string().nullable(),
      version: z.string().nullable(),
      url: z.string().nullable(),
      tools: z.array(z.object({ name: z.string(), command: z.string(), digest: z.string() })),
    })
    .nullable()
    .describe('The MCP server that it wraps, with the tools that an administrator approved'),
  manifestModule: z.string().nullable().describe('The module of a manifest written in code; null for JSON'),
}).meta({ id: 'PluginDetail' });
export type PluginDetail = z.infer<typeof PluginDetail>;

const tags = ['marketplace'];
const params = z.object({ pluginId: PluginId });

export const listPlugins = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins',
  summary: 'List installed and linked plugins, with the faults of broken ones',
  tags,
  query: NoFilters,
  reply: page(PluginRecord),
});

export const getPlugin = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins/:pluginId',
  summary: 'Show a plugin and what it contributes',
  tags,
  params,
  reply: PluginDetail,
  errors: ['PLUGIN_NOT_FOUND'],
});

const Source = z.string().min(1).max(2048);
const Digest = z.string().startsWith('sha256-').max(128);
const RunManifest = z
  .boolean()
  .default(false)
  .describe('Run a manifest written in code even without a bubblewrap sandbox');

const KeepCode = z
  .boolean()
  .default(false)
  .describe('Keep the code of a wrapped MCP server, and list its tools anew');

/** A difference between the installed version of a plugin and the planned version. */
export const PlanChange = z
  .object({
    change: z.enum(['added', 'removed', 'changed']),
    what: z
      .string()
      .describe(
        'permission, route, webhook, command, tool, MCP server, job, workflow, schedule, event, hook, validator or dependency',
      ),
    name: z.string(),
    before: z.unknown().optional(),
    after: z.unknown().optional(),
  })
  .meta({ id: 'PluginPlanChange' });
export type PlanChange = z.infer<typeof PlanChange>;

/** Preview of an installation or update. Users confirm the preview with its `manifestDigest`. */
export const PluginPlan = z
  .object({
    id: z.string(),
    version: z.string(),
    installed: z.string().nullable().describe('The installed version'),
    source: z.string(),
    resolved: z.string(),
    manifestDigest: Digest,
    changes: z.array(PlanChange),
    warnings: z.array(z.string()).describe('Points to consider before accepting'),
  })
  .meta({ id: 'PluginPlan' });
export type PluginPlan = z.infer<typeof PluginPlan>;

/** Installs a plugin. `source` is an npm name with an optional range, a tarball, a folder or a git URL. */
export const installPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins',
  summary: 'Install a plugin',
  tags,
  status: 201,
  body: z.strictObject({
    source: Source,
    manifestDigest: Digest.optional().describe('Digest of the accepted plan; any other manifest is rejected'),
    runManifest: RunManifest,
  }),
  reply: PluginDetail,
  errors: [
    'FORBIDDEN',
    'VALIDATION_ERROR',
    'INVALID_MANIFEST',
    'INVALID_HANDLER',
    'MISSING_DEPENDENCY',
    'CIRCULAR_DEPENDENCY',
    'PLUGIN_CONFLICT',
    'CONFLICT',
    'UPSTREAM_UNAVAILABLE',
  ],
});

export const uninstallPlugin = endpoint({
  method: 'DELETE',
  path: '/api/v1/marketplace/plugins/:pluginId',
  summary: 'Uninstall a plugin',
  tags,
  params,
  reply: z.object({ uninstalled: z.literal(true) }),
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'CONFLICT'],
});

/** Fetches and checks a plugin in the same way as an installation or update, but changes nothing. */
export const planPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plans',
  summary: 'Preview an installation or update',
  tags,
  body: z
    .strictObject({
      source: Source.optional(),
      pluginId: PluginId.optional(),
      runManifest: RunManifest,
      keepCode: KeepCode,
    })
    .refine(
      ({ source, pluginId }) => source !== undefined || pluginId !== undefined,
      'name a source, or the plugin to update',
    ),
  reply: PluginPlan,
  errors: installPlugin.errors!,
});

export const updatePlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins/:pluginId/update',
  summary: 'Update an installed plugin from its source or another one',
  tags,
  params,
  body: z.strictObject({
    source: Source.optional(),
    manifestDigest: Digest.optional(),
    runManifest: RunManifest,
    keepCode: KeepCode,
  }),
  reply: PluginDetail,
  errors: [...installPlugin.errors!, 'PLUGIN_NOT_FOUND'],
});

export const enablePlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins/:pluginId/enable',
  summary: 'Enable a plugin',
  tags,
  params,
  reply: PluginRecord,
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND'],
});

/** Disables a plugin for all services. @spec Plugin enabled flag */
export const disablePlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins/:pluginId/disable',
  summary: 'Disable a plugin; running executions finish',
  tags,
  params,
  reply: PluginRecord,
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'CONFLICT'],
});

export const linkPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/links',
  summary: 'Link a development folder as a plugin',
  tags,
  status: 201,
  body: z.strictObject({ folder: Source }),
  reply: PluginDetail,
  errors: installPlugin.errors!,
});

export const unlinkPlugin = endpoint({
  method: 'DELETE',
  path: '/api/v1/marketplace/links/:pluginId',
  summary: 'Unlink a development folder; its files are kept',
  tags,
  params,
  reply: z.object({ unlinked: z.literal(true) }),
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'CONFLICT'],
});

/**
 * Reloads the plugins in every service. Linked plugins need a reload after each change, because their changes do not
 * change the lock file.
 */
export const reloadPlugins = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/reload',
  summary: 'Reload the plugins in every service',
  tags,
  reply: z.object({ revision: z.number().int() }),
  errors: ['FORBIDDEN'],
});

/**
 * Reloads the plugins of one service. The marketplace service calls this endpoint of every other service after a
 * change. The gateway does not forward requests to this path.
 */
export const rereadPlugins = endpoint({
  method: 'POST',
  path: '/internal/plugins/reread',
  summary: 'Reload the plugins from the lock file, then answer',
  reply: z.object({ reread: z.literal(true) }),
  errors: ['UNAUTHORIZED'],
});
