import {
  type ManifestV3,
  type PlanChange,
  type PlatformConfig,
  type PluginPlan,
  routeSecurity,
} from '../../../contracts/index.ts';
import {
  type LoadedPlugin,
  manifestDigest,
  permissionSets,
  selfStarting,
  workflowBriefs,
} from '../../../plugins/index.ts';

interface PlanParts {
  /** The loaded plugin of the same id, if there is one. */
  before: Pick<LoadedPlugin, 'manifest'> | undefined;
  installed: string | null;
  source: string;
  resolved: string;
  authMode: PlatformConfig['auth']['mode'];
  /** Why the code of the plugin was not run. */
  reason: string | undefined;
}

/** Returns the plan that the operator approves before the plugin is installed or updated. */
export function planOf(
  { id, version, manifest, manifestModule }: LoadedPlugin,
  { before, installed, source, resolved, authMode, reason }: PlanParts,
): PluginPlan {
  return {
    ...{ id, version, installed, source, resolved },
    manifestDigest: manifestDigest(manifest),
    changes: changesBetween(before?.manifest, manifest),
    warnings: [...warningsOf(manifest, authMode), ...codeWarnings(manifestModule, reason)],
  };
}

/**
 * Returns the capabilities of a manifest by kind and name. For an update, the operator approves the differences between
 * both versions.
 */
function capabilities(
  manifest: ManifestV3 | undefined,
): Map<string, { what: string; name: string; value: unknown }> {
  const found = new Map<string, { what: string; name: string; value: unknown }>();
  if (!manifest) return found;
  const add = (what: string, name: string, value: unknown) =>
    found.set(`${what} ${name}`, { what, name, value });
  const { permissions, rest, webhooks, commands, jobs, dependencies, mcpServer } = manifest;
  for (const host of permissions.network) add('permission', `network ${host}`, true);
  for (const name of permissions.env) add('permission', `env ${name}`, true);
  for (const name of permissions.secrets ?? []) add('permission', `secrets ${name}`, true);
  for (const path of permissions.fs?.read ?? []) add('permission', `fs.read ${path}`, true);
  for (const path of permissions.fs?.write ?? []) add('permission', `fs.write ${path}`, true);
  for (const name of permissions.connections ?? []) add('permission', `connection ${name}`, true);
  for (const command of permissions.invoke) add('permission', `invoke ${command}`, true);
  for (const [name, value] of Object.entries(permissions.platform ?? {})) {
    if (value) add('permission', `platform.${name}`, true);
  }
  for (const [name, value] of Object.entries(permissions.quotas ?? {}))
    add('permission', `quotas.${name}`, value);
  for (const { method, path, permissions: own, ...route } of rest?.routes ?? []) {
    add('route', `${method} /api${rest!.basePath}${path === '/' ? '' : path}`, {
      security: routeSecurity(rest!, route) ?? null,
      ...(own ? { permissions: own } : {}),
    });
  }
  for (const { event, auth } of webhooks) add('webhook', event, { auth: auth.type });
  for (const { id, permissions: own } of commands) add('command', id, own ? { permissions: own } : {});
  if (mcpServer) {
    const { tools, package: name, url, ...server } = mcpServer;
    add('MCP server', url ?? name!, server);
    for (const { digest: _, name: tool, ...shown } of tools) add('tool', tool, shown);
  }
  for (const { id } of jobs) add('job', id, {});
  for (const { id, isCode } of workflowBriefs(manifest)) add('workflow', id, { code: isCode });
  for (const { what, name, when } of selfStarting(manifest)) add(what, name, { when });
  for (const [id, range] of Object.entries(dependencies)) add('dependency', id, range);
  return found;
}

/** Returns the changes between two manifests. Without a previous manifest, every capability is an addition. */
function changesBetween(before: ManifestV3 | undefined, after: ManifestV3): PlanChange[] {
  const [old, next] = [capabilities(before), capabilities(after)];
  const changes: PlanChange[] = [];
  for (const [key, { what, name, value }] of next) {
    const was = old.get(key);
    if (!was) changes.push({ change: 'added', what, name, after: value });
    else if (JSON.stringify(was.value) !== JSON.stringify(value))
      changes.push({ change: 'changed', what, name, before: was.value, after: value });
  }
  for (const [key, { what, name, value }] of old) {
    if (!next.has(key)) changes.push({ change: 'removed', what, name, before: value });
  }
  return changes;
}

/** Warning for every `auth.mode` except `required`. Any program that can reach the ports can then call the services. */
const OPEN_PORTS =
  'The services accept calls without a token (auth.mode is "optional"): through their ports it may start, read and cancel runs and jobs of every tenant, call routes of other plugins, and read logs and analytics. Plugin state stays protected. Set auth.mode to "required" to prevent this.';

/** Returns warnings about permissions whose consequences are not obvious. */
function warningsOf(manifest: ManifestV3, authMode: PlatformConfig['auth']['mode']): string[] {
  const { rest } = manifest;
  const warnings: string[] = [];
  const granted = permissionSets(manifest);
  if (granted.some(({ platform }) => platform?.childProcess === true))
    warnings.push('It may start programs, which is full access to this machine.');
  if (granted.some(({ platform }) => platform?.childProcess === 'sandboxed'))
    warnings.push('It may start programs inside bubblewrap or a container.');
  if (granted.some(({ network }) => network.includes('*')))
    warnings.push(
      'It may open any network connection, to this machine and its network too.',
      ...(authMode === 'required' ? [] : [OPEN_PORTS]),
    );
  for (const way of ['read', 'write'] as const) {
    if (granted.some(({ fs }) => (fs?.[way].length ?? 0) > 0))
      warnings.push(`It may ${way} files outside of its folder.`);
  }
  const open = (rest?.routes ?? []).filter((route) => routeSecurity(rest!, route)?.includes('none'));
  if (open.length > 0)
    warnings.push(`${open.length} of its routes ${open.length === 1 ? 'needs' : 'need'} no authentication.`);
  const bySelf = selfStarting(manifest);
  const count = (what: string) => bySelf.filter((one) => one.what === what).length;
  if (count('schedule') + count('event') > 0)
    warnings.push(
      `It starts workflows by itself: ${count('schedule')} on schedules, ${count('event')} on webhook deliveries.`,
    );
  if (count('validator') > 0) warnings.push('Its code runs on unauthenticated requests.');
  return warnings;
}

/** Returns notes that state which code of the plugin was run to make the plan. */
function codeWarnings(module: string | undefined, notRun: string | undefined): string[] {
  return [
    ...(module === undefined ? [] : [`Its manifest is code (${module}), which was run to read it.`]),
    ...(notRun === undefined
      ? []
      : [
          `Its code was not run to check it, because the bubblewrap sandbox is not active (${notRun}). Once installed, only Node's permission model restricts it.`,
        ]),
  ];
}
