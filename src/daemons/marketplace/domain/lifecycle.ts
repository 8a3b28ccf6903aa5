import { messageOf } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { LoadedPlugin } from '../../../plugins/index.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import type { MarketplaceAction } from './announce.ts';

export type LifecycleReason = MarketplaceAction;

/** Runs a plugin's hook after the plugin was enabled, or before the plugin is disabled. */
export type Lifecycle = (
  plugin: LoadedPlugin,
  hook: 'onEnable' | 'onDisable',
  reason: LifecycleReason,
) => Promise<void>;

/** Time limit of a hook in ms. The limit is short, because the operator's command waits for the hook. */
const TIMEOUT_MS = 10_000;

/**
 * Creates the function that runs hooks. A failed hook is only logged, because the operator decides whether a plugin is
 * enabled. @spec docs/plugins.md "Lifecycle"
 */
export function createLifecycle(
  runtime: Pick<PluginRuntime, 'execute'>,
  logger: Logger,
  newId: () => string,
): Lifecycle {
  return async (plugin, hook, reason) => {
    const handler = plugin.manifest.lifecycle?.[hook];
    if (handler === undefined) return;
    const requestId = newId();
    const failed = (message: string) =>
      logger.diagnostic(
        {
          domain: 'plugins',
          event: 'plugin.lifecycle_failed',
          level: 'warn',
          reasonCode: 'LIFECYCLE',
          message: `${hook} of ${plugin.id} failed: ${message}`,
          outcome: 'degraded',
          evidence: { handler, reason },
        },
        { pluginId: plugin.id, requestId },
      );
    try {
      const { exitCode, error } = await runtime.execute({
        plugin,
        handler,
        host: 'job',
        hostContext: { host: 'job', job: hook },
        input: { reason },
        params: {},
        user: null,
        tenantId: 'default',
        requestId,
        traceId: requestId.replaceAll('-', ''),
        timeoutMs: TIMEOUT_MS,
      });
      if (exitCode !== 0) failed(error?.message ?? `exit code ${exitCode}`);
    } catch (error) {
      failed(messageOf(error));
    }
  };
}
