import { setTimeout as sleep } from 'node:timers/promises';
import {
  getRun,
  listRunEvents,
  listRunLogs,
  type RunEvent,
  type RunLogLine,
  type WorkflowRun,
} from '../../../contracts/index.ts';
import { serverSentEvents } from '../../../kit/server-sent-events.ts';
import type { CommandContext } from '../../context.ts';
import { openGatewayStream } from '../../gateway-client.ts';
import { interruption } from '../../interruption.ts';
import { coloured } from './views.ts';

/** What a run says from `cursor` on, to its end; goes on where it was when the connection breaks. */
async function* live<Item>(context: CommandContext, path: string, signal: AbortSignal): AsyncGenerator<Item> {
  let lastId: string | undefined;
  for (let connected = false; ; ) {
    try {
      const response = await openGatewayStream(context, path, {
        signal,
        headers: {
          accept: 'text/event-stream',
          ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
        },
      });
      connected = true;
      for await (const { id, event, data } of serverSentEvents(response.body!)) {
        if (event === 'end') return;
        lastId = id ?? lastId;
        if (data !== undefined) yield JSON.parse(data) as Item;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!connected) throw error;
    }
    await sleep(1000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
  }
}

const pathOf = (path: string, runId: string): string => path.replace(':runId', encodeURIComponent(runId));

export interface FollowedRun {
  /** Once it was over, or as it was when following was interrupted. */
  run: WorkflowRun;
  /** 0 and 1 for how the run ended, 130 or 143 after an interruption. */
  exitCode: number;
}

/** Tells each step as it starts and ends. Whoever interrupts it leaves the run running. */
export async function followRun(context: CommandContext, runId: string): Promise<FollowedRun> {
  const { ui, globals, client } = context;
  const { signal, exitCode } = interruption();
  const startedAt = new Map<string, number>();
  for await (const event of live<RunEvent>(context, pathOf(listRunEvents.path, runId), signal)) {
    if (globals.json) ui.line(JSON.stringify(event));
    else {
      const line = progressLine(event, startedAt, context);
      if (line !== null) ui.line(line);
    }
  }
  if (signal.aborted) ui.note(`The run goes on; look at it with svc workflows show ${runId}`);
  const run = await client.call(getRun, { params: { runId: runId as never } });
  return { run, exitCode: exitCode() || (run.status === 'succeeded' ? 0 : 1) };
}

function progressLine(
  event: RunEvent,
  startedAt: Map<string, number>,
  { ui }: CommandContext,
): string | null {
  const { type, stepId, time, data } = event;
  const [entity, what] = type.split('.') as [string, string];
  if (entity === 'run') return `${ui.out.dim(clockTime(time))} run ${coloured(what, ui.out)}`;
  if (entity !== 'step' || stepId === null) return null;
  if (what === 'started') {
    startedAt.set(stepId, time);
    return `${ui.out.dim(clockTime(time))}   ${stepId} started`;
  }
  const took = startedAt.has(stepId) ? ui.out.dim(` ${time - startedAt.get(stepId)!} ms`) : '';
  const why =
    typeof data.for === 'string' ? ` for ${data.for}` : typeof data.code === 'string' ? ` ${data.code}` : '';
  return `${ui.out.dim(clockTime(time))}   ${stepId} ${coloured(what, ui.out)}${why}${took}`;
}

function clockTime(time: number): string {
  return new Date(time).toISOString().slice(11, 23);
}

/** Prints log lines as they come, until the run is over. Resolves with the exit code. */
export async function followLogs(
  context: CommandContext,
  runId: string,
  step: string | undefined,
): Promise<number> {
  const { signal, exitCode } = interruption();
  const query = step === undefined ? '' : `?stepId=${encodeURIComponent(step)}`;
  for await (const line of live<RunLogLine>(context, pathOf(listRunLogs.path, runId) + query, signal))
    context.ui.line(context.globals.json ? JSON.stringify(line) : logLine(line, context));
  return exitCode();
}

export function logLine({ time, level, message, stepId }: RunLogLine, { ui }: CommandContext): string {
  const tone =
    level === 'error' || level === 'fatal' ? ui.out.red : level === 'warn' ? ui.out.yellow : ui.out.dim;
  return `${ui.out.dim(clockTime(time))} ${tone(level.padEnd(5))} ${stepId === null ? '' : `${stepId}: `}${message}`;
}
