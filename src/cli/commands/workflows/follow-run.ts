import {
  getRun,
  listRunEvents,
  listRunLogs,
  type RunEvent,
  type RunLogLine,
  type WorkflowRun,
} from '../../../contracts/index.ts';
import { oneLine } from '../../../kit/security/escape-controls.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';
import { interruption } from '../../interruption.ts';
import { coloured } from './views.ts';

/** Streams events or log lines of a run until the run ends. Reconnects after a lost connection. */
async function follow<Item>(
  context: CommandContext,
  { path, query = {}, signal }: { path: string; query?: Record<string, unknown>; signal: AbortSignal },
  take: (item: Item) => void,
): Promise<void> {
  await followEvents(context, {
    path,
    query,
    signal,
    take({ event, data }) {
      if (event === 'end') return 'stop';
      if (data !== '') take(JSON.parse(data) as Item);
    },
    onLost: (why) =>
      context.ui.noteOf(why, (reason) => `Disconnected: ${reason}. Reconnecting; the run continues.`),
  });
}

const pathOf = (path: string, runId: string): string => path.replace(':runId', encodeURIComponent(runId));

export interface FollowedRun {
  /** The final state of the run, or the last known state if the user interrupted the command. */
  run: WorkflowRun;
  /** 0 if the run succeeded, and 1 otherwise. After an interruption, 130 (SIGINT) or 143 (SIGTERM). */
  exitCode: number;
}

/** Prints each step of a run when the step starts and ends. An interruption ends only the output, not the run. */
export async function followRun(context: CommandContext, runId: string): Promise<FollowedRun> {
  const { ui, globals, client } = context;
  const { signal, exitCode } = interruption();
  const startedAt = new Map<string, number>();
  await follow<RunEvent>(context, { path: pathOf(listRunEvents.path, runId), signal }, (event) => {
    if (globals.json || isShown(event)) ui.record(event, (shown) => progressLine(shown, startedAt, context));
  });
  if (signal.aborted) ui.note(`The run continues. Show it with svc workflows show ${runId}`);
  const run = await client.call(getRun, { params: { runId } });
  return { run, exitCode: exitCode() || (run.status === 'succeeded' ? 0 : 1) };
}

/** Returns true for events of the run and its steps. Other events are printed only with `--json`. */
const isShown = ({ type, stepId }: RunEvent): boolean =>
  type.startsWith('run.') || (type.startsWith('step.') && stepId !== null);

function progressLine(event: RunEvent, startedAt: Map<string, number>, { ui }: CommandContext): string {
  const { type, stepId, time, data } = event;
  const [entity, what] = type.split('.') as [string, string];
  if (entity === 'run') return `${ui.out.dim(clockTime(time))} run ${coloured(what, ui.out)}`;
  if (what === 'started' && stepId !== null) {
    startedAt.set(stepId, time);
    return `${ui.out.dim(clockTime(time))}   ${stepId} started`;
  }
  const began = startedAt.get(stepId ?? '');
  const took = began === undefined ? '' : ui.out.dim(` after ${formatDuration(time - began)}`);
  const why =
    typeof data.for === 'string' ? ` for ${data.for}` : typeof data.code === 'string' ? ` ${data.code}` : '';
  return `${ui.out.dim(clockTime(time))}   ${stepId} ${coloured(what, ui.out)}${why}${took}`;
}

function clockTime(time: number): string {
  return new Date(time).toISOString().slice(11, 23);
}

/** Prints the log lines of a run until the run ends. Resolves with the exit code. */
export async function followLogs(
  context: CommandContext,
  runId: string,
  step: string | undefined,
): Promise<number> {
  const { signal, exitCode } = interruption();
  const request = { path: pathOf(listRunLogs.path, runId), query: { stepId: step }, signal };
  await follow<RunLogLine>(context, request, (line) =>
    context.ui.record(line, (shown) => logLine(shown, context)),
  );
  return exitCode();
}

export function logLine({ time, level, message, stepId }: RunLogLine, { ui }: CommandContext): string {
  const tone =
    level === 'error' || level === 'fatal' ? ui.out.red : level === 'warn' ? ui.out.yellow : ui.out.dim;
  return `${ui.out.dim(clockTime(time))} ${tone(level.padEnd(5))} ${stepId === null ? '' : `${stepId}: `}${oneLine(message)}`;
}
