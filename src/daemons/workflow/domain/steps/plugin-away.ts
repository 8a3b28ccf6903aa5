import { PlatformError } from '../../../../kit/errors.ts';
import { StepFailure, toStepFailure } from './retry-policy.ts';

/** Why a call never reached its handler, in the `reason` of an error's details. */
const NOT_LOADED: ReadonlySet<unknown> = new Set(['not_loaded', 'folder_gone']);

/**
 * A plugin that is not loaded, or whose code does not load: disabled, moved, or deployed with a fault. The handler has not
 * begun. @spec docs/decisions/0100
 */
export class PluginAway extends StepFailure {
  readonly pluginId: string;

  constructor(pluginId: string, failure: StepFailure) {
    super(failure.errorClass, failure.error, failure.retryAfterMs);
    this.pluginId = pluginId;
  }
}

/** The thrown value as such a failure; undefined when it says something else. */
export function pluginAwayOf(thrown: unknown, pluginId: string): PluginAway | undefined {
  if (!(thrown instanceof PlatformError)) return undefined;
  const { code, details } = thrown;
  const isAway =
    code === 'PLUGIN_NOT_FOUND' || NOT_LOADED.has(details.reason) || details.diedLoading === true;
  return isAway ? new PluginAway(pluginId, toStepFailure(thrown)) : undefined;
}
