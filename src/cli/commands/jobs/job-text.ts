import type { Job } from '../../../contracts/index.ts';
import type { Style } from '../../style.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { coloured, durationOf, originRows } from '../workflows/views.ts';

export function jobPairs(job: Job, style: Style): string {
  return pairs(
    [
      ['job', job.id],
      ['handler', job.handler],
      ['status', coloured(job.status, style)],
      ...waitRows(job),
      ...(job.queuedReason ? ([['reason', job.queuedReason]] as Array<[string, string]>) : []),
      ['attempts', String(job.attempts)],
      ['created', timeText(job.createdAt)],
      ['duration', durationOf(job)],
      ...originRows(job),
      ['result', job.result === null ? '-' : JSON.stringify(job.result)],
      ...(job.error
        ? ([['error', `${job.error.code} ${job.error.message}`]] as Array<[string, string]>)
        : []),
    ],
    style,
  );
}

/**
 * Describes why a job waits. A job is stored as a run with the single step `job.run`. The decide command therefore
 * names this step.
 */
function waitRows({ id, waitingFor }: Job): Array<[string, string]> {
  if (!waitingFor) return [];
  const command = waitingFor.for === 'decision' ? ` svc workflows decide ${id} job.run retry` : '';
  return [['waits for', `${waitingFor.for}${waitingFor.message ? `: ${waitingFor.message}` : ''}${command}`]];
}
