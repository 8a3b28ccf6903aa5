import type { ExecutionRequest, ManifestV3 } from '../../contracts/index.ts';
import type { ExecutionListener, RunOptions } from '../../plugins/index.ts';

/** The fields of a plugin that are needed to run it. */
export interface RunnablePlugin {
  id: string;
  version: string;
  root: string;
  manifest: ManifestV3;
}

type CallFields =
  | 'handler'
  | 'host'
  | 'hostContext'
  | 'input'
  | 'params'
  | 'user'
  | 'tenantId'
  | 'requestId'
  | 'traceId';

/**
 * A call of one handler. `permissions` replaces the plugin's permissions, because a route can declare other
 * permissions. `timeoutMs` defaults to 60 s.
 */
export interface PluginCall
  extends Pick<ExecutionRequest, CallFields>,
    Partial<
      Pick<ExecutionRequest, 'executionId' | 'schemas' | 'permissions' | 'timeoutMs' | 'parentSpanId'>
    > {
  /** Span of the execution if the caller records the execution. If undefined, this runtime records the execution. */
  recordedSpanId?: string;
  /** The plugin, or the id of a loaded plugin. */
  plugin: RunnablePlugin | string;
}

export interface ExecuteOptions extends RunOptions {
  /** Whether the call waits while the queue of the plugin's processes is full, instead of failing. */
  waitsForQueue?: boolean;
  /** Receives progress and log lines of the handler, if it runs with the services of this process. */
  listener?: ExecutionListener;
}
