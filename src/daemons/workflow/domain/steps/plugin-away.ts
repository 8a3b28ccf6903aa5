import { PlatformError } from '../../../../kit/errors/errors.ts';
import { StepFailure, toStepFailure } from './retry-policy.ts';

/** Values of `details.reason` in errors of calls that failed before their handler began. */
const NOT_LOADED: ReadonlySet<unknown> = new Set(['not_loaded', 'folder_gone']);

/**
 * Error for a plugin that is not loaded or whose code cannot be loaded. The handler has not begun. @spec
 * docs/workflows.md "When a plugin is absent"
 */
export class PluginAway extends StepFailure {
  readonly pluginId: string;

  constructor(pluginId: string, failure: StepFailure) {
    super(failure.errorClass, failure.error, failure.retryAfterMs);
    this.pluginId = pluginId;
  }
}

/** Converts an error about an unavailable plugin to `PluginAway`. Returns undefined for other values. */
export function pluginAwayOf(thrown: unknown, pluginId: string): PluginAway | undefined {
  if (!(thrown instanceof PlatformError)) return undefined;
  const { code, details } = thrown;
  const isUnavailable =
    code === 'PLUGIN_NOT_FOUND' || NOT_LOADED.has(details.reason) || details.diedLoading === true;
  return isUnavailable ? new PluginAway(pluginId, toStepFailure(thrown)) : undefined;
}
