import { z } from 'zod';
import { PlatformError } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';
import type { LoadedPlugin } from '../../plugins/index.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { invalidInput } from './domain/definition/compile-common.ts';
import type { CheckCodeInput } from './domain/starts/run-starter.ts';

/** What the process says: it runs plugin code, so nothing of it is believed. */
const Checked = z
  .array(
    z.object({
      path: z.array(z.union([z.string().max(256), z.number()])).max(512),
      message: z.string().transform((text) => text.slice(0, 1000)),
    }),
  )
  .max(100)
  .nullable();

/**
 * Asks the schema of the plugin itself, in a process without permissions. Its JSON Schema would not do: that lets through
 * what a refinement refuses, and refuses what a coercion takes. Where the schema cannot be asked (no process can be had,
 * the module cannot be loaded), the run starts all the same: its first pass parses the input again, and says what is wrong.
 * @spec docs/workflows.md "Workflows in code"
 */
export function codeInputCheck(
  plugins: Pick<PluginRuntime, 'registry' | 'describer'>,
  logger: Logger,
): CheckCodeInput {
  /** Handlers without a schema: they need no process. A plugin that is read anew is another one. */
  const free = new WeakMap<LoadedPlugin, Set<string>>();

  return async ({ pluginId, handler }, input, tenantId) => {
    const plugin = plugins.registry.find(pluginId);
    if (!plugin || free.get(plugin)?.has(handler)) return;
    const { id, version, root } = plugin;
    let issues: z.infer<typeof Checked>;
    try {
      issues = Checked.parse(await plugins.describer.input({ id, version, root }, handler, input, tenantId));
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'EXECUTION_TIMEOUT')
        throw invalidInput([{ path: [], message: `could not be checked in time: ${error.message}` }]);
      logger.warn(`The input of a run could not be checked before its start by ${handler} of ${pluginId}`, {
        pluginId,
        tenantId,
        error,
      });
      return;
    }
    if (issues === null) free.set(plugin, (free.get(plugin) ?? new Set()).add(handler));
    else if (issues.length > 0) throw invalidInput(issues);
  };
}
