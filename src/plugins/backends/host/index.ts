import type { CommandResult, ExecutionRequest, HostPlugin, HostTarget } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import type { ExecutionBackend, RunOptions } from '../../execution.ts';
import { packageIntegrityOf } from '../../integrity.ts';

/**
 * Runs an execution on a connected host that matches the target. Throws HOST_UNAVAILABLE if no connected host matches.
 */
export type RunOnHost = (
  request: ExecutionRequest,
  plugin: HostPlugin,
  target: HostTarget,
  options: RunOptions,
) => Promise<CommandResult>;

export interface HostBackendDeps {
  run: RunOnHost;
  /**
   * Returns the host selection that the config contains for a plugin. An empty selection matches any host of the
   * namespace.
   */
  targetOf(pluginId: string): HostTarget;
  clock: Clock;
}

/** Cache TTL of plugin digests. It is short because linked plugins can change at any time. */
const DIGEST_MS = seconds(2);

/** Runs plugin code on registered hosts, through their sockets. @spec docs/operations.md "Where plugin code runs" */
export function createHostBackend({ run, targetOf, clock }: HostBackendDeps): ExecutionBackend {
  const digests = new Map<string, { at: number; integrity: Promise<string> }>();

  function integrityAt(root: string): Promise<string> {
    const known = digests.get(root);
    if (known && clock.monotonic() - known.at < DIGEST_MS) return known.integrity;
    const integrity = packageIntegrityOf(root);
    integrity.catch(() => digests.delete(root));
    digests.set(root, { at: clock.monotonic(), integrity });
    return integrity;
  }

  return {
    name: 'host',
    async run(request, options = {}) {
      const { id, version, root } = request.plugin;
      const configured = targetOf(id);
      const plugin = { id, version, integrity: await integrityAt(root) };
      return run(request, plugin, narrowed(configured, options.target ?? {}, id), options);
    },
    async close() {},
  };
}

/**
 * Merges the requested host target into the configured target. Throws HOST_UNAVAILABLE if they conflict, because a
 * request must not override the config.
 */
function narrowed(configured: HostTarget, asked: HostTarget, pluginId: string): HostTarget {
  const clash = (what: string): PlatformError =>
    new PlatformError(
      'HOST_UNAVAILABLE',
      `The plugin ${pluginId} runs on another host: the ${what} asked for is not the configured one (execution.plugins["${pluginId}"]).`,
      { details: { pluginId, configured, asked } },
    );
  for (const what of ['hostId', 'capability'] as const) {
    if (configured[what] !== undefined && asked[what] !== undefined && configured[what] !== asked[what])
      throw clash(what);
  }
  for (const [name, value] of Object.entries(asked.labels ?? {})) {
    if (Object.hasOwn(configured.labels ?? {}, name) && configured.labels?.[name] !== value)
      throw clash(`label "${name}"`);
  }
  const labels = { ...asked.labels, ...configured.labels };
  return { ...asked, ...configured, ...(Object.keys(labels).length > 0 ? { labels } : {}) };
}
