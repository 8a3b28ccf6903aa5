import type { Diagnostic, Logger } from '../kit/telemetry/logger.ts';
import { formatDuration } from '../kit/time/duration.ts';
import { type SupervisorEvent, subjectName } from './control-protocol.ts';

export function logEvent(logger: Logger, event: SupervisorEvent): void {
  const diagnose = (diagnostic: Omit<Diagnostic, 'domain' | 'event'>): void =>
    logger.diagnostic({ domain: 'supervisor', event: `supervisor.${event.type}`, ...diagnostic });
  if (event.type === 'waiting') logger.info(`Waiting: ${event.reason}`);
  else if (event.type === 'ready') {
    const { service, url, pid, tookMs } = event;
    logger.info(`${subjectName(event)} is ready after ${formatDuration(tookMs)}`, {
      meta: { service, url, pid, tookMs },
    });
  } else if (event.type === 'stopped') {
    const { service, reason, killed } = event;
    logger.info(`${subjectName(event)} ${killed ? 'was killed' : 'stopped'}`, {
      meta: { service, reason },
    });
  } else if (event.type === 'crashed') {
    const { service, reason, retryInMs } = event;
    diagnose({
      level: 'error',
      reasonCode: 'SERVICE_CRASHED',
      message: `${subjectName(event)} crashed (${reason}); restarting in ${retryInMs}ms`,
      outcome: 'degraded',
      evidence: { service, reason, retryInMs },
    });
  } else {
    const { service, reason, crashes, retryInMs, lastLines } = event;
    diagnose({
      level: 'fatal',
      reasonCode: 'CRASH_LOOP',
      message: `${subjectName(event)} crashed ${crashes} times in a row (${reason}); restarting in ${formatDuration(retryInMs)}. To restart it now: \`svc restart ${service}\``,
      outcome: 'failed',
      evidence: { service, reason, retryInMs, lastLines },
    });
  }
}
