import type { RunStep, StepAttempt, WorkflowRun } from '../../../contracts/index.ts';
import { oneLine } from '../../../kit/security/escape-controls.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { Style } from '../../style.ts';
import { timeText } from '../../time-text.ts';
import { wrap } from '../../wrap.ts';
import { coloured } from './views.ts';

const BAR_COLUMNS = 30;
const DURATION_COLUMNS = 8;
/** Width of the narrowest chart, in which names still have 20 columns. */
const MIN_WIDTH = 60;
const MAX_WIDTH = 140;
const GLYPHS = { none: ' ', queued: '·', working: '█', waiting: '░' } as const;
const LEGEND = `${GLYPHS.queued} queued  ${GLYPHS.working} works  ${GLYPHS.waiting} waits`;

type Phase = keyof typeof GLYPHS;

/** An attempt with the times at which its phases began. Null phases were skipped. */
interface Row {
  name: string;
  status: string;
  queuedAt: number | null;
  startedAt: number | null;
  waitingAt: number | null;
  /** Null until it ends. */
  finishedAt: number | null;
  error: { code: string; message: string } | null;
}

export interface TimelineParts {
  run: Pick<WorkflowRun, 'id' | 'workflowId' | 'status' | 'createdAt' | 'finishedAt' | 'error'>;
  steps: readonly RunStep[];
  now: number;
}

/** Draws one line for each attempt of a run. No line is longer than `terminalWidth`, unless that is very narrow. */
export function timelineChart(
  { run, steps, now }: TimelineParts,
  style: Style,
  terminalWidth: number,
): string {
  const width = Math.min(Math.max(terminalWidth, MIN_WIDTH), MAX_WIDTH);
  const rows = steps.flatMap(rowsOf);
  const to = run.finishedAt ?? Math.max(now, run.createdAt);
  const begun = rows.toSorted((a, b) => beginOf(a) - beginOf(b));
  const skipped = steps.filter(({ status }) => status === 'skipped').length;
  return [
    `${oneLine(run.workflowId)} ${coloured(run.status, style)} ${style.dim(run.id)}`,
    style.dim(`${timeText(run.createdAt)}, ${formatDuration(to - run.createdAt)}   ${LEGEND}`),
    '',
    ...begun.flatMap((row) => linesOf(row, { from: run.createdAt, to, width, style })),
    ...(begun.length === 0 ? [style.dim('No step has begun.')] : []),
    ...(skipped > 0
      ? ['', style.dim(`${skipped} ${skipped === 1 ? 'step was' : 'steps were'} skipped.`)]
      : []),
    ...(run.error === null ? [] : ['', ...wrap(errorText(run.error), width).map((line) => style.red(line))]),
  ].join('\n');
}

function rowsOf(step: RunStep): Row[] {
  const { id, history, status, attempts } = step;
  const ended = history.map(
    (attempt): Row => ({ ...timesOf(attempt), ...attempt, name: nameOf(id, attempt.attempt) }),
  );
  const { queuedAt, attemptStartedAt: startedAt, waitingAt, finishedAt } = step;
  // A wait that is cancelled ends without an attempt in the history.
  const isMissing = finishedAt === null || (status === 'cancelled' && history.length < attempts);
  const hasBegun = (queuedAt ?? step.startedAt ?? waitingAt) !== null;
  if (!isMissing || !hasBegun || status === 'pending') return ended;
  const name = nameOf(id, Math.max(attempts, history.length + 1));
  return [...ended, { name, status, queuedAt, startedAt, waitingAt, finishedAt, error: null }];
}

function timesOf({ queuedAt, startedAt, waitingAt, finishedAt }: StepAttempt) {
  return { queuedAt, startedAt, waitingAt, finishedAt };
}

function nameOf(id: string, attempt: number): string {
  return attempt > 1 ? `${id} #${attempt}` : id;
}

function beginOf({ queuedAt, startedAt, waitingAt, finishedAt }: Row): number {
  return queuedAt ?? startedAt ?? waitingAt ?? finishedAt ?? Number.POSITIVE_INFINITY;
}

interface Chart {
  from: number;
  to: number;
  width: number;
  style: Style;
}

function linesOf(row: Row, chart: Chart): string[] {
  const { width, style, to } = chart;
  const columns = width - BAR_COLUMNS - DURATION_COLUMNS - 2;
  const state = row.status === 'succeeded' ? '' : ` ${row.status}`;
  const name = cut(`${oneLine(row.name)}${state}`, columns);
  const paint = row.error !== null ? style.red : row.finishedAt === null ? style.yellow : style.green;
  const took = formatDuration((row.finishedAt ?? to) - beginOf(row));
  const line = `${row.error === null ? name : style.red(name)} ${paint(barOf(row, chart))} ${took.padStart(DURATION_COLUMNS)}`;
  const why = row.error === null ? [] : wrap(`  ${errorText(row.error)}`, width);
  return [line, ...why.map((text) => style.red(text))];
}

/** Draws the phase that an attempt had in the middle of each column, and at least one column. */
function barOf(row: Row, { from, to }: Chart): string {
  const step = Math.max(1, to - from) / BAR_COLUMNS;
  const end = row.finishedAt ?? to;
  const columnOf = (at: number): number =>
    Math.min(BAR_COLUMNS - 1, Math.max(0, Math.floor((at - from) / step)));
  const first = columnOf(beginOf(row));
  const last = Math.max(first, columnOf(end - step / 2));
  return Array.from({ length: BAR_COLUMNS }, (_, column) => {
    if (column < first || column > last) return GLYPHS.none;
    const middle = Math.min(Math.max(from + (column + 0.5) * step, beginOf(row)), end);
    return GLYPHS[phaseAt(row, middle)];
  }).join('');
}

function phaseAt({ queuedAt, startedAt, waitingAt }: Row, at: number): Phase {
  if (waitingAt !== null && at >= waitingAt) return 'waiting';
  if (startedAt !== null && at >= startedAt) return 'working';
  return queuedAt === null ? 'working' : 'queued';
}

function errorText({ code, message }: { code: string; message: string }): string {
  return oneLine(`${code}: ${message}`);
}

function cut(text: string, columns: number): string {
  return text.length <= columns ? text.padEnd(columns) : `${text.slice(0, columns - 1)}…`;
}
