import type { AnalyticsEvent, CommandResult, ExecutionRequest, ManifestV3 } from '../../contracts/index.ts';
import { codeOf } from '../../kit/errors/errors.ts';
import { newSpanId } from '../../kit/telemetry/trace.ts';
import type { Resources } from '../define-daemon.ts';
import { createHandlerNames } from './handler-names.ts';
import { createExecutionMetrics } from './metrics.ts';

type Execution = Pick<
  ExecutionRequest,
  | 'executionId'
  | 'plugin'
  | 'handler'
  | 'host'
  | 'hostContext'
  | 'user'
  | 'tenantId'
  | 'requestId'
  | 'traceId'
  | 'spanId'
  | 'parentSpanId'
>;

/** Assigns the execution's span, runs the handler and reports its outcome. Errors are thrown again. */
export type TrackExecution = (
  execution: Execution,
  manifest: ManifestV3,
  run: () => Promise<CommandResult>,
) => Promise<CommandResult>;

/**
 * Creates the tracker that reports one event per handler execution, except for validators. @spec Analytics events:
 * plugin.command.completed, plugin.command.failed
 */
export function executionEvents({
  analytics,
  tracer,
  metrics,
  random,
}: Pick<Resources, 'analytics' | 'tracer' | 'metrics' | 'random'>): TrackExecution {
  const observe = createExecutionMetrics(metrics);
  const nameOf = createHandlerNames();
  return async (execution, manifest, run) => {
    const spanId = newSpanId(random);
    const { parentSpanId } = execution;
    const parent: { parentSpanId?: string } = parentSpanId === undefined ? {} : { parentSpanId };
    execution.spanId = spanId;
    // Executions of validators are not reported, because unauthenticated clients trigger validators and no user is
    // involved.
    if (execution.host === 'validator') return run();
    const startedAt = performance.now();
    const tell = (exitCode: number, code: string | undefined): void => {
      const { plugin, host, tenantId, requestId, traceId } = execution;
      const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
      const commandId = nameOf(manifest, execution);
      observe(plugin.id, host, exitCode, durationMs);
      tracer?.ended({
        traceId,
        spanId,
        parentSpanId,
        name: `${plugin.id} ${commandId}`,
        kind: 'internal',
        durationMs,
        failed: exitCode !== 0,
        attributes: {
          'svc.plugin_id': plugin.id,
          'svc.handler': execution.handler,
          'svc.host': host,
          'svc.tenant_id': tenantId,
          'svc.request_id': requestId,
          'svc.execution_id': execution.executionId,
          'svc.exit_code': exitCode,
        },
      });
      analytics.track(exitCode === 0 ? 'plugin.command.completed' : 'plugin.command.failed', {
        tenantId,
        runId: runIdOf(execution),
        payload: {
          pluginId: plugin.id,
          commandId,
          durationMs,
          exitCode,
        },
        ctx: { host, requestId, traceId, spanId, ...parent, ...(code === undefined ? {} : { code }) },
        ...(execution.user ? { actor: actorOf(execution.user) } : {}),
      });
    };
    try {
      const result = await run();
      tell(result.exitCode, result.exitCode === 0 ? undefined : result.error?.code);
      return result;
    } catch (error) {
      tell(1, codeOf(error));
      throw error;
    }
  };
}

/** Returns the id of the execution's workflow run, or else the id of the execution. */
function runIdOf({ hostContext, executionId }: Execution): string {
  const { runId } = hostContext;
  return typeof runId === 'string' ? runId : executionId;
}

/** Returns the actor of an event. Registered hosts are agents. All other callers count as users. */
function actorOf({ hostId }: NonNullable<ExecutionRequest['user']>): NonNullable<AnalyticsEvent['actor']> {
  return { type: hostId.startsWith('host_') ? 'agent' : 'user', id: hostId };
}
