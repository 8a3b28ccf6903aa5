import { PlatformError } from '../../../../kit/errors/errors.ts';
import { StepFailure, toStepFailure } from './retry-policy.ts';

/** Values of `details.reason` in errors of calls that never reached their handler. */
const NOT_LOADED: ReadonlySet<unknown> = new Set(['not_loaded', 'folder_gone']);

/**
 * Thrown for a plugin that is not loaded, or whose code fails to load, because it was disabled, moved or broken. The
 * handler has not begun.
 * @spec docs/workflows.md "When a plugin is absent"
 */
export class PluginAway extends StepFailure {
  readonly pluginId: string;

  constructor(pluginId: string, failure: StepFailure) {
    super(failure.errorClass, failure.error, failure.retryAfterMs);
    this.pluginId = pluginId;
  }
}

/** Converts a thrown value to PluginAway. Returns undefined if the value does not mean an unavailable plugin. */
export function pluginAwayOf(thrown: unknown, pluginId: string): PluginAway | undefined {
  if (!(thrown instanceof PlatformError)) return undefined;
  const { code, details } = thrown;
  const isUnavailable =
    code === 'PLUGIN_NOT_FOUND' || NOT_LOADED.has(details.reason) || details.diedLoading === true;
  return isUnavailable ? new PluginAway(pluginId, toStepFailure(thrown)) : undefined;
}
