import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunLogLine, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { type ApiError, call } from '../../api/call.ts';

export interface StepLogState {
  /** The newest lines, oldest first. */
  lines: readonly RunLogLine[];
  /** Whether older lines were left out. */
  isCut: boolean;
  isLoading: boolean;
  error: ApiError | undefined;
  reload(): void;
}

const PAGE = 1000;
const MAX_LINES = 10_000;
const PAUSE_MS = 1000;
const FIRST = { lines: [] as readonly RunLogLine[], isCut: false, isLoading: true, error: undefined };

/** Reads the log of a step to its end. While the run is active, new lines are read every second. */
export function useStepLog({ id: runId, finishedAt }: WorkflowRun, stepId: string): StepLogState {
  const [state, setState] = useState<Omit<StepLogState, 'reload'>>(FIRST);
  const [round, setRound] = useState(0);
  const isActive = useRef(true);
  isActive.current = finishedAt === null;
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setState(FIRST);
    const read = async (): Promise<void> => {
      for (let cursor: string | undefined; !signal.aborted; ) {
        // The last lines can arrive together with the end of the run, so they are read once more after it.
        const wasActive = isActive.current;
        const query = { stepId, limit: PAGE, cursor };
        const { items, nextCursor } = await call('listRunLogs', { params: { runId }, query }, { signal });
        cursor = nextCursor ?? items.at(-1)?.id.toString() ?? cursor;
        setState((before) => withLines(before, items, nextCursor !== null));
        if (nextCursor !== null) continue;
        if (!wasActive) return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    };
    read().catch((error: ApiError) => {
      if (!signal.aborted) setState((before) => ({ ...before, error, isLoading: false }));
    });
    return () => controller.abort();
  }, [runId, stepId, round]);
  return { ...state, reload: () => setRound((before) => before + 1) };
}

function withLines(
  before: Omit<StepLogState, 'reload'>,
  items: readonly RunLogLine[],
  isLoading: boolean,
): Omit<StepLogState, 'reload'> {
  // Without news, the same state is kept, so that nothing is rendered again.
  if (items.length === 0 && before.isLoading === isLoading) return before;
  const lines = [...before.lines, ...items];
  return {
    lines: lines.slice(-MAX_LINES),
    isCut: before.isCut || lines.length > MAX_LINES,
    isLoading,
    error: undefined,
  };
}
