import type { ServiceName } from '../contracts/index.ts';
import { codeOf, messageOf } from '../kit/errors/errors.ts';
import { AnalyticsWriter } from '../kit/telemetry/analytics.ts';
import { createLogger, type Logger } from '../kit/telemetry/logger.ts';
import { createMetrics } from '../kit/telemetry/metrics.ts';
import type { Tracer } from '../kit/telemetry/tracer.ts';
import type { Resources } from './define-daemon.ts';
import type { StartOptions } from './start-options.ts';
import { createStoreMetrics } from './store-metrics.ts';

export type Telemetry = Pick<Resources, 'logger' | 'metrics' | 'analytics' | 'tracer'>;

/** Opens the log, metrics, analytics and traces of a service. */
export async function openTelemetry(
  name: ServiceName,
  options: StartOptions,
  stack: AsyncDisposableStack,
): Promise<Telemetry> {
  const { clock, random, output, dataDir, logLevel } = options;
  const logger = createLogger({ serviceId: name, output, clock, ...(logLevel ? { level: logLevel } : {}) });
  stack.defer(() => output.flush());
  stack.defer(() => reportStopped(logger, name));
  const tracer = await openTracer(name, options, logger);
  stack.defer(() => tracer?.close());
  const analytics = options.analytics ?? new AnalyticsWriter({ output, clock, random });
  stack.defer(() => analytics.flush());
  const metrics = stack.adopt(options.metrics ?? createMetrics(name, clock), (opened) => opened.close());
  createStoreMetrics(metrics, dataDir);
  return { logger, metrics, analytics, tracer };
}

/** Loads the exporter only if traces have a target. */
async function openTracer(
  service: ServiceName,
  { otlp, clock }: StartOptions,
  logger: Logger,
): Promise<Tracer | undefined> {
  if (!otlp) return undefined;
  const { OtlpTracer } = await import('../kit/telemetry/otlp.ts');
  return new OtlpTracer({ ...otlp, service, clock, logger });
}

export function reportStarted(logger: Logger, name: ServiceName, url: string): void {
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.started',
    level: 'info',
    reasonCode: 'STARTED',
    message: `${name} listens on ${url}`,
    outcome: 'succeeded',
    evidence: { url, pid: process.pid },
  });
}

export function reportStartFailed(logger: Logger, name: ServiceName, error: unknown): void {
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.start_failed',
    level: 'fatal',
    reasonCode: codeOf(error) ?? 'START_FAILED',
    message: `${name} did not start: ${messageOf(error)}`,
    outcome: 'failed',
    error,
  });
}

function reportStopped(logger: Logger, name: ServiceName): void {
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.stopped',
    level: 'info',
    reasonCode: 'SHUTDOWN',
    message: `${name} stopped`,
    outcome: 'succeeded',
  });
}
