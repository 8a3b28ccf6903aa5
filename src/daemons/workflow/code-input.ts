import { z } from 'zod';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { LoadedPlugin } from '../../plugins/index.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { invalidInput } from './domain/definition/compile-common.ts';
import type { CheckCodeInput } from './domain/starts/run-admission.ts';

/** Response of the process that validates inputs. Untrusted, because the process runs plugin code. */
const Checked = z.object({
  issues: z
    .array(
      z.object({
        path: z.array(z.union([z.string().max(256), z.number()])).max(512),
        message: z.string().transform((text) => text.slice(0, 1000)),
      }),
    )
    .max(100)
    .nullable(),
  signals: z.array(z.string().max(256)).max(1000),
});

interface Known {
  /** Whether an input must be checked. False if an earlier check showed that the handler has no input schema. */
  ofInput: boolean;
  ofSignals: ReadonlySet<string>;
}

/**
 * Returns a check that uses the plugin's own schema, because JSON Schema lacks refinements and coercions. If the plugin
 * code cannot be loaded, any value is accepted, because the replay validates the value again. @spec
 * docs/workflows.md "Workflows in code"
 */
export function codeInputCheck(
  plugins: Pick<PluginRuntime, 'registry' | 'describer'>,
  logger: Logger,
): CheckCodeInput {
  /**
   * Caches which schemas each handler declares. For a handler without a schema, no process is started. A plugin reload
   * creates new keys, so outdated entries are never used.
   */
  const known = new WeakMap<LoadedPlugin, Map<string, Known>>();

  function note(plugin: LoadedPlugin, handler: string, schemas: Known): void {
    const ofPlugin = known.get(plugin) ?? new Map<string, Known>();
    known.set(plugin, ofPlugin.set(handler, schemas));
  }

  return async ({ pluginId, handler }, input, { tenantId, signal }) => {
    const plugin = plugins.registry.find(pluginId);
    const schemas = plugin && known.get(plugin)?.get(handler);
    const part = signal === undefined ? 'input' : 'payload';
    if (!plugin || (schemas && !(signal === undefined ? schemas.ofInput : schemas.ofSignals.has(signal))))
      return;
    const { id, version, root } = plugin;
    let checked: z.infer<typeof Checked>;
    try {
      checked = Checked.parse(
        await plugins.describer.input({ id, version, root }, { ref: handler, input, signal }, tenantId),
      );
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'EXECUTION_TIMEOUT')
        throw invalidInput([{ path: [], message: `could not be checked in time: ${error.message}` }], part);
      const what =
        signal === undefined
          ? 'input of a run could not be checked before its start'
          : `payload of a signal "${signal}" could not be checked`;
      logger.warn(`The ${what} by ${handler} of ${pluginId}`, {
        pluginId,
        tenantId,
        error,
      });
      return;
    }
    const { issues, signals } = checked;
    const ofInput = signal === undefined ? issues !== null : (schemas?.ofInput ?? true);
    note(plugin, handler, { ofInput, ofSignals: new Set(signals) });
    if (issues !== null && issues.length > 0) throw invalidInput(issues, part);
  };
}
