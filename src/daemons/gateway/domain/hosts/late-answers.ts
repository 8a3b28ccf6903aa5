import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/logger.ts';
import { createTokenBucket } from '../../../../plugins/index.ts';

/** Diagnostics of one session: a hostile agent may answer a thousand unknown executions a second. */
const RATE = { perSecond: 1, atOnce: 20 };

/** Reports an answer to an execution that has ended (`late`), or that the host was never given. */
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
        ? `Host ${hostId} answered an execution that had ended already; the answer is dropped`
        : `Host ${hostId} answered an execution it was not given; the answer is dropped`,
      outcome: 'refused',
      evidence: { hostId, executionId, type, ...(unreported > 0 ? { unreported } : {}) },
    });
    unreported = 0;
  };
}
