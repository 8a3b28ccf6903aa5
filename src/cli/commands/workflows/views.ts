import type { Job, RunStep, Schedule, WorkflowRun } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { Style } from '../../style.ts';
import { pairs, table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

export function coloured(status: string, style: Style): string {
  if (status === 'succeeded') return style.green(status);
  if (status === 'failed' || status === 'timed_out') return style.red(status);
  if (status === 'cancelled' || status === 'skipped' || status === 'pending') return style.dim(status);
  return style.yellow(status);
}

export function durationOf({
  startedAt,
  finishedAt,
}: {
  startedAt: number | null;
  finishedAt: number | null;
}): string {
  return startedAt === null || finishedAt === null ? '-' : formatDuration(finishedAt - startedAt);
}

export function runsTable(items: readonly WorkflowRun[], style: Style): string {
  if (items.length === 0) return 'There are no runs.';
  const rows = items.map((run) => [
    run.id,
    run.workflowId,
    stateOf(run, style),
    run.trigger,
    timeText(run.createdAt),
    durationOf(run),
    labelsText(run.labels),
  ]);
  const hasLabels = items.some(({ labels = {} }) => Object.keys(labels).length > 0);
  const headings = ['run', 'workflow', 'status', 'trigger', 'created', 'duration'];
  return table(hasLabels ? [...headings, 'labels'] : headings, rows, style);
}

function stateOf({ status, waitingReason, pauseScope }: WorkflowRun, style: Style): string {
  const why = [pauseScope === undefined ? null : 'paused', waitingReason].filter((each) => each !== null);
  return `${coloured(status, style)}${why.length === 0 ? '' : ` (${why.join(', ')})`}`;
}

export function runPairs(run: WorkflowRun, style: Style): string {
  const json = (value: unknown): string => (value === null ? '-' : JSON.stringify(value));
  return pairs(
    [
      ['run', run.id],
      ['workflow', run.workflowId],
      ['status', stateOf(run, style)],
      ...(run.ending ? ([['ends as', coloured(run.ending, style)]] as Array<[string, string]>) : []),
      ...(run.queuedReason ? ([['reason', run.queuedReason]] as Array<[string, string]>) : []),
      ['trigger', run.trigger],
      ...(run.handles === undefined ? [] : ([['handles', run.handles]] as Array<[string, string]>)),
      ...labelPairs(run),
      ['created', timeText(run.createdAt)],
      ['started', timeText(run.startedAt)],
      ['duration', durationOf(run)],
      ['resumed', `${run.resumeCount} times`],
      ...originRows(run),
      ['input', json(run.input)],
      ['output', json(run.output)],
      ...(run.error
        ? ([['error', `${run.error.code} ${run.error.message}`]] as Array<[string, string]>)
        : []),
    ],
    style,
  );
}

function labelPairs({ labels }: WorkflowRun): Array<[string, string]> {
  const text = labelsText(labels);
  return text === '' ? [] : [['labels', text]];
}

/** Formats labels as `customer=acme env=test`. A gateway of an earlier version sends no labels. */
function labelsText(labels: WorkflowRun['labels'] = {}): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');
}

/** Returns the rows of what started a run or job. */
export function originRows({
  traceId,
  deliveryId,
}: Pick<WorkflowRun, 'traceId' | 'deliveryId'>): Array<[string, string]> {
  return [['trace', traceId], ...(deliveryId === null ? [] : [['delivery', deliveryId] as [string, string]])];
}

export function stepsTable(steps: readonly RunStep[], style: Style): string {
  const rows = steps.map((step) => [
    step.id,
    step.uses,
    coloured(step.status, style),
    String(step.attempts),
    step.startedAt !== null && step.readyAt !== null ? formatDuration(step.startedAt - step.readyAt) : '-',
    durationOf(step),
    step.error?.message ?? step.waitingFor?.message ?? waitsFor(step),
  ]);
  return table(['step', 'uses', 'status', 'attempts', 'queued', 'duration', ''], rows, style);
}

/** Formats the attempts of steps that were retried or failed. Returns null if no step was retried or failed. */
export function attemptsTable(steps: readonly RunStep[], style: Style): string | null {
  const rows = steps
    .filter(({ history }) => history.length > 1 || history.some(({ error }) => error !== null))
    .flatMap(({ id, history }) =>
      history.map((attempt) => [
        id,
        String(attempt.attempt),
        coloured(attempt.status, style),
        timeText(attempt.startedAt),
        durationOf(attempt),
        attempt.error ? `${attempt.error.message}${sourcePositionOf(attempt.error)}` : '',
      ]),
    );
  if (rows.length === 0) return null;
  return table(['attempt of', '', 'status', 'started', 'duration', 'error'], rows, style);
}

/** Returns the position in the plugin's source code at which a step failed. */
function sourcePositionOf({ details }: NonNullable<RunStep['error']>): string {
  return typeof details.at === 'string' ? ` (at ${details.at})` : '';
}

function waitsFor({ waitingFor, wakeAt }: RunStep): string {
  if (!waitingFor) return '';
  const what = waitingFor.name ?? waitingFor.runId ?? '';
  return `waits for ${waitingFor.for}${what === '' ? '' : ` ${what}`}${wakeAt === null ? '' : ` until ${timeText(wakeAt)}`}`;
}

export function schedulesTable(items: readonly Schedule[], style: Style): string {
  if (items.length === 0) return 'No workflow has a schedule.';
  const rows = items.map((schedule) => [
    schedule.id,
    schedule.cron,
    schedule.timezone,
    schedule.paused ? style.yellow('paused') : timeText(schedule.nextAt),
    timeText(schedule.lastAt),
    schedule.overlap,
    schedule.catchUp,
  ]);
  return table(['schedule', 'cron', 'timezone', 'next', 'last', 'overlap', 'catch-up'], rows, style);
}

export function jobsTable(items: readonly Job[], style: Style): string {
  if (items.length === 0) return 'There are no jobs.';
  const rows = items.map((job) => [
    job.id,
    job.handler,
    coloured(job.status, style),
    String(job.attempts),
    timeText(job.createdAt),
    durationOf(job),
  ]);
  return table(['job', 'handler', 'status', 'attempts', 'created', 'duration'], rows, style);
}
