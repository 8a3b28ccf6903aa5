import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { createTokenBucket } from '../../../../plugins/index.ts';

/** Rate limit of diagnostics per session, because an agent could send thousands of invalid results per second. */
const RATE = { perSecond: 1, atOnce: 20 };

/** Reports a result of an ended execution (`late` is true), or of an execution that was never sent to the host. */
export type ReportLate = (type: string, executionId: string, late: boolean) => void;

export function createLateReports(hostId: string, clock: Clock, logger: Logger): ReportLate {
  const bucket = createTokenBucket(clock, RATE.perSecond, RATE.atOnce);
  let unreported = 0;
  return (type, executionId, late) => {
    if (!bucket.take(1)) {
      unreported++;
      return;
    }
    logger.diagnostic({
      domain: 'hosts',
      event: late ? 'host.late_result' : 'host.unknown_execution',
      level: 'warn',
      reasonCode: late ? 'LATE_RESULT' : 'UNKNOWN_EXECUTION',
      message: late
        ? `Host ${hostId} answered an execution that had already ended; the result was dropped`
        : `Host ${hostId} answered an execution that was not sent to it; the result was dropped`,
      outcome: 'refused',
      evidence: { hostId, executionId, type, ...(unreported > 0 ? { unreported } : {}) },
    });
    unreported = 0;
  };
}
