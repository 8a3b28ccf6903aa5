import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunLogLine, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { type ApiError, call } from '../../api/call.ts';

interface State {
  /** Lines of the step, oldest first. */
  lines: readonly RunLogLine[];
  /** Cursor of earlier lines. Null if there are none. Undefined until the first page is read. */
  earlier: string | null | undefined;
  isLoading: boolean;
  error: ApiError | undefined;
}

export interface StepLogState extends Omit<State, 'earlier'> {
  /** Whether the run has lines before those that were read. They may belong to other steps. */
  hasEarlier: boolean;
  loadEarlier(): void;
  reload(): void;
}

/** Lines of the run in one call. The lines of the step are among them. */
const PAGE = 1000;
/** Calls that follow each other without a click, while no line of the step was found. */
const MAX_CALLS = 5;
const PAUSE_MS = 1000;
const FIRST: State = { lines: [], earlier: undefined, isLoading: true, error: undefined };

/**
 * Reads the newest lines of a step, and earlier ones on demand, so that a long log costs no more than a short one. While
 * the run is active, new lines are read every second.
 */
export function useStepLog({ id: runId, finishedAt }: WorkflowRun, stepId: string): StepLogState {
  const [state, setState] = useState(FIRST);
  const [round, setRound] = useState(0);
  const isActive = useRef(true);
  isActive.current = finishedAt === null;
  const signal = useRef(new AbortController().signal);

  const readPage = (query: { cursor?: string | undefined; order: 'asc' | 'desc' }) =>
    call('listRunLogs', { params: { runId }, query: { ...query, limit: PAGE } }, { signal: signal.current });
  const ofStep = (items: readonly RunLogLine[]) => items.filter((line) => line.stepId === stepId);
  /** Reads earlier lines until one of the step is found. Returns the newest id of the run that was read. */
  const readEarlier = async (from: string | undefined): Promise<number> => {
    let [cursor, newest] = [from, 0];
    for (let calls = 0; calls < MAX_CALLS; calls++) {
      const { items, nextCursor } = await readPage({ cursor, order: 'desc' });
      newest = Math.max(newest, items[0]?.id ?? 0);
      const found = ofStep(items).toReversed();
      const isLast = found.length > 0 || nextCursor === null || calls === MAX_CALLS - 1;
      setState((before) => ({
        ...{ lines: [...found, ...before.lines], earlier: nextCursor, error: undefined },
        isLoading: !isLast,
      }));
      if (isLast) break;
      cursor = nextCursor;
    }
    return newest;
  };
  const follow = async (newest: number): Promise<void> => {
    for (let cursor = String(newest); !signal.current.aborted; ) {
      // The last lines can arrive together with the end of the run, so they are read once more after it.
      const wasActive = isActive.current;
      const { items, nextCursor } = await readPage({ cursor, order: 'asc' });
      cursor = nextCursor ?? items.at(-1)?.id.toString() ?? cursor;
      const found = ofStep(items);
      // Without news, the same state is kept, so that nothing is rendered again.
      if (found.length > 0) setState((before) => ({ ...before, lines: [...before.lines, ...found] }));
      if (nextCursor !== null) continue;
      if (!wasActive) return;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
  const run = (work: Promise<unknown>): void => {
    const own = signal.current;
    void work.catch((error: ApiError) => {
      if (!own.aborted) setState((before) => ({ ...before, error, isLoading: false }));
    });
  };
  useEffect(() => {
    const controller = new AbortController();
    signal.current = controller.signal;
    setState(FIRST);
    run(readEarlier(undefined).then(follow));
    return () => controller.abort();
  }, [runId, stepId, round]);
  const { earlier, ...shown } = state;
  return {
    ...shown,
    hasEarlier: typeof earlier === 'string',
    loadEarlier() {
      if (state.isLoading || typeof earlier !== 'string') return;
      setState((before) => ({ ...before, isLoading: true }));
      run(readEarlier(earlier));
    },
    reload: () => setRound((before) => before + 1),
  };
}
