import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { PluginId } from './ids.ts';
import { PluginOrigin } from './lock-file.ts';

/** What keeps a plugin, or a part of it, from being used. `path` says where in the manifest. */
export const PluginFault = z
  .object({ code: z.string(), path: z.string(), message: z.string() })
  .meta({ id: 'PluginFault' });

/** A plugin that the platform knows, whether it could be loaded or not. @spec docs/plugins.md "Installing" */
export const PluginRecord = z
  .object({
    id: z.string(),
    version: z.string().nullable().describe('null when the manifest could not be read'),
    origin: PluginOrigin.describe('installed, linked, or matched by the config ("project")'),
    source: z.string().describe('As it was asked for: a name and range, a path, an address'),
    resolved: z.string().nullable().describe('What that turned out to be: a version, a commit, a path'),
    enabled: z.boolean(),
    status: z.enum(['loaded', 'broken', 'disabled']),
    faults: z.array(PluginFault),
    keptVersion: z
      .string()
      .nullable()
      .describe(
        'Of a broken one: the version that runs on, as what is on disk now cannot; null when none does',
      ),
    root: z.string(),
    integrity: z.string().nullable().describe('Covers every file; null where files may change'),
    installedAt: z.iso.datetime().nullable(),
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
  workflows: z.array(
    z.object({
      id: z.string(),
      name: z.string().nullable(),
      code: z.boolean().describe('Whether its steps are written in code'),
      refused: z.boolean().describe('Whether its definition is faulty: nothing starts it'),
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
    .describe('What runs without a user who asks for it'),
  permissions: z.record(z.string(), z.unknown()),
  manifestModule: z.string().nullable().describe('The module that is the manifest; null where it is data'),
}).meta({ id: 'PluginDetail' });
export type PluginDetail = z.infer<typeof PluginDetail>;

const tags = ['marketplace'];
const params = z.object({ pluginId: PluginId });

export const listPlugins = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins',
  summary: 'Installed and linked plugins, broken ones with what is wrong with them',
  tags,
  query: NoFilters,
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

const Source = z.string().min(1).max(2048);
const Digest = z.string().startsWith('sha256-').max(128);
const RunManifest = z
  .boolean()
  .default(false)
  .describe('Run a manifest that is code although bubblewrap does not confine it');

/** One difference between what was agreed to and what would be. */
export const PlanChange = z
  .object({
    change: z.enum(['added', 'removed', 'changed']),
    what: z
      .string()
      .describe(
        'permission, route, webhook, command, job, workflow, schedule, event, hook, validator or dependency',
      ),
    name: z.string(),
    before: z.unknown().optional(),
    after: z.unknown().optional(),
  })
  .meta({ id: 'PluginPlanChange' });
export type PlanChange = z.infer<typeof PlanChange>;

/** What an installation or update would bring. `manifestDigest` is what consent is given to. */
export const PluginPlan = z
  .object({
    id: z.string(),
    version: z.string(),
    installed: z.string().nullable().describe('The version there is now'),
    source: z.string(),
    resolved: z.string(),
    manifestDigest: Digest,
    changes: z.array(PlanChange),
    warnings: z.array(z.string()).describe('What to think about before agreeing'),
  })
  .meta({ id: 'PluginPlan' });
export type PluginPlan = z.infer<typeof PluginPlan>;

/** `source`: an npm name with or without a range, a tarball, a folder or a git URL. */
export const installPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins',
  summary: 'Install a plugin',
  tags,
  status: 201,
  body: z.strictObject({
    source: Source,
    manifestDigest: Digest.optional().describe('Of the plan that was agreed to: anything else is refused'),
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

/** Fetches and checks as an installation or update would, and changes nothing. */
export const planPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plans',
  summary: 'Show what an installation, or the update of a plugin, would bring',
  tags,
  body: z
    .strictObject({ source: Source.optional(), pluginId: PluginId.optional(), runManifest: RunManifest })
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
  summary: 'Replace an installed plugin by a newer one of its source, or of another',
  tags,
  params,
  body: z.strictObject({
    source: Source.optional(),
    manifestDigest: Digest.optional(),
    runManifest: RunManifest,
  }),
  reply: PluginDetail,
  errors: [...installPlugin.errors!, 'PLUGIN_NOT_FOUND'],
});

export const enablePlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins/:pluginId/enable',
  summary: 'Switch a plugin on again',
  tags,
  params,
  reply: PluginRecord,
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND'],
});

/** @spec Plugin enabled flag */
export const disablePlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/plugins/:pluginId/disable',
  summary: 'Switch a plugin off; running invocations finish',
  tags,
  params,
  reply: PluginRecord,
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'CONFLICT'],
});

export const linkPlugin = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/links',
  summary: 'Use a folder under development as a plugin, where it is',
  tags,
  status: 201,
  body: z.strictObject({ folder: Source }),
  reply: PluginDetail,
  errors: installPlugin.errors!,
});

export const unlinkPlugin = endpoint({
  method: 'DELETE',
  path: '/api/v1/marketplace/links/:pluginId',
  summary: 'Stop using a linked folder; the folder stays as it is',
  tags,
  params,
  reply: z.object({ unlinked: z.literal(true) }),
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'CONFLICT'],
});

/** For folders under development, whose changes no lock file shows. */
export const reloadPlugins = endpoint({
  method: 'POST',
  path: '/api/v1/marketplace/reload',
  summary: 'Have every service read the plugins anew',
  tags,
  reply: z.object({ revision: z.number().int() }),
  errors: ['FORBIDDEN'],
});

/** Asked by the marketplace service of every other one after each change; no gateway forwards this path. */
export const rereadPlugins = endpoint({
  method: 'POST',
  path: '/internal/plugins/reread',
  summary: 'Answer once the plugins are those that the lock file names now',
  reply: z.object({ reread: z.literal(true) }),
  errors: ['UNAUTHORIZED'],
});
