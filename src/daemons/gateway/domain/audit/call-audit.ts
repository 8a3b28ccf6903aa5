import type { AccessRule, AuditOutcome } from '../../../../contracts/index.ts';
import { isRecord } from '../../../../kit/data/is-record.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { AuditedCall, AuditLog } from './audit-log.ts';

/** Data of a call that is known before its answer. */
export interface OpenCall {
  caller: AuditedCall['caller'];
  rule: AccessRule;
  params: unknown;
  query?: unknown;
  /** Path with the query. */
  path: string;
  requestId: string;
  traceId: string;
}

/** Data of the call that is known when the call has ended. */
export interface CallEnd {
  status: number;
  /** Overrides the outcome that follows from the status. */
  outcome?: AuditOutcome;
  body: unknown;
  reply: unknown;
}

/**
 * Records a call that has ended. Answers 400 to 499 are not recorded, because nothing was changed. Throws
 * INTERNAL_ERROR if the entry cannot be stored. A 503 could make clients repeat the change.
 */
export async function recordCall(
  audit: AuditLog,
  { params, query, ...call }: OpenCall,
  { status, body, reply, ...end }: CallEnd,
  logger: Logger,
): Promise<void> {
  const outcome = end.outcome ?? outcomeOf(status);
  if (outcome === undefined || (call.rule.hasDryRun && isDryRun(body))) return;
  const recorded: AuditedCall = { ...call, parts: { params, query, body, reply }, status, outcome };
  try {
    await audit.record(recorded);
  } catch (error) {
    const { requestId, traceId, rule } = call;
    logger.diagnostic(
      {
        domain: 'audit',
        event: 'audit.write_failed',
        level: 'error',
        reasonCode: 'AUDIT_WRITE_FAILED',
        message: `${rule.audit} ended with status ${status}, but its audit entry could not be stored`,
        outcome: 'failed',
        evidence: { action: rule.audit!, status },
        error,
      },
      { requestId, traceId },
    );
    throw new PlatformError(
      'INTERNAL_ERROR',
      `The call was carried out with status ${status}, but the audit log could not record it. Check the result before you repeat the call.`,
      { details: { status }, cause: error },
    );
  }
}

function isDryRun(body: unknown): boolean {
  return isRecord(body) && body.dryRun === true;
}

function outcomeOf(status: number): AuditOutcome | undefined {
  if (status < 400) return 'succeeded';
  return status < 500 ? undefined : 'failed';
}

/** Parses a JSON body or reply. Returns null for any other text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
