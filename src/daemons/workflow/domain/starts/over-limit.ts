import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { NewRun, StartOptions } from '../../../../store/ports/index.ts';

type KeyedRun = Pick<NewRun, 'workflowId' | 'concurrencyLimit'>;
type Limit = 'concurrent' | 'perDay' | 'perMonth' | 'key';

/** Returns the error for a run start that exceeds a limit. */
export function overLimit(
  limit: Limit,
  run: NewRun,
  limits: StartOptions['limits'],
  now: number,
): PlatformError {
  if (limit === 'key') return keyTaken(run);
  if (limit === 'concurrent')
    return new PlatformError(
      'CONCURRENT_LIMIT_EXCEEDED',
      `The tenant "${run.tenantId}" may have ${limits?.concurrent} unfinished runs; wait for one to end.`,
      { details: { tenantId: run.tenantId, limit: limits?.concurrent } },
    );
  const period = limit === 'perDay' ? 'day' : 'month';
  const resetsAt = endOf(period, now);
  return new PlatformError(
    'QUOTA_EXCEEDED',
    `The tenant "${run.tenantId}" may start ${limits?.[limit]} runs a ${period} (UTC); it may start the next one after ${new Date(resetsAt).toISOString()}.`,
    {
      details: { tenantId: run.tenantId, limit: limits?.[limit], period, resetsAt },
      headers: { 'retry-after': String(Math.max(1, Math.ceil((resetsAt - now) / 1000))) },
    },
  );
}

/**
 * Returns the error for a run that `concurrency.strategy: reject` rejects, either at its start request or at its
 * planned time.
 */
export function keyTaken({ workflowId, concurrencyLimit: limit }: KeyedRun): PlatformError {
  return new PlatformError(
    'CONCURRENT_LIMIT_EXCEEDED',
    `The workflow "${workflowId}" allows ${limit} concurrent runs per concurrency key; wait for one to end.`,
    { details: { workflowId, limit } },
  );
}

function endOf(period: 'day' | 'month', now: number): number {
  const date = new Date(now);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1);
}
