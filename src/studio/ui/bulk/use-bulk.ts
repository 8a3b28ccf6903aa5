import { useEffect, useRef, useState } from 'preact/hooks';
import { foreignNamespace } from '../../app/namespace.ts';
import { IS_PORTAL } from '../../app/portal-address.ts';
import { session } from '../../app/session-state.ts';
import { type BulkJob, type BulkReply, callBulk } from './bulk-job.ts';

interface Progress {
  job: BulkJob;
  cursor: string;
  total: number;
  isTotalKnown: boolean;
  done: number;
  skipped: number;
  refused: string[];
}

export type BulkState =
  | { phase: 'idle'; message: string; isFailed: boolean }
  | { phase: 'counting'; job: BulkJob }
  | { phase: 'asking'; progress: Progress; sample: string[] }
  | { phase: 'working' | 'stopped'; progress: Progress; reason: string };

export interface Bulk {
  state: BulkState;
  /** Counts what matches. Nothing is changed before `confirm`. */
  ask(job: BulkJob): void;
  confirm(): void;
  /** Stops between two calls. What is done stays done. */
  stop(): void;
  forget(): void;
}

const BATCH = 50;
const PAUSE_MS = 1000;
const MAX_PAUSES = 90;
/** Where an action is stored. A portal stores nothing: another portal in the same tab would continue it. */
const storage = IS_PORTAL ? undefined : sessionStorage;
const IDLE: BulkState = { phase: 'idle', message: '', isFailed: false };

interface BulkOptions {
  /** Name of the list, under which an action is stored. */
  list: string;
  /** Filters and chosen rows. An open question is dropped when they change. */
  of: unknown;
  onDone: () => void;
}

/**
 * State of the bulk actions of a list. The browser drives the action batch by batch. Its cursor is stored before each
 * call, so that an action continues after a reload, and a repeated call does nothing twice.
 */
export function useBulk({ list, of, onDone }: BulkOptions): Bulk {
  // An action belongs to one person and one namespace.
  const [storageKey] = useState(() => JSON.stringify([list, session.value?.hostId, namespaceId()]));
  const [state, setState] = useState<BulkState>(() => restored(storageKey));
  const isStopped = useRef(false);
  // Leaving the screen stops the action. It is offered again when the screen is opened.
  const stop = (): void => {
    isStopped.current = true;
  };
  useEffect(() => stop, []);
  const question = useRef(0);
  useEffect(() => {
    question.current++;
    setState((before) => (['counting', 'asking'].includes(before.phase) ? IDLE : before));
  }, [JSON.stringify(of)]);

  const finish = ({ job, done, skipped, refused }: Progress): void => {
    storage?.removeItem(storageKey);
    const parts = [
      `${job.label}: ${done} done.`,
      ...(skipped > 0 ? [`${skipped} were skipped, because they were handled before.`] : []),
      ...(refused.length > 0 ? [`${refused.length} were refused: ${refused[0]}`] : []),
    ];
    setState({ phase: 'idle', message: parts.join(' '), isFailed: refused.length > 0 });
    onDone();
  };

  const work = async (started: Progress): Promise<void> => {
    isStopped.current = false;
    let progress = started;
    for (let pauses = 0; ; ) {
      storage?.setItem(storageKey, JSON.stringify(progress));
      if (isStopped.current) return setState({ phase: 'stopped', progress, reason: 'Stopped.' });
      setState({ phase: 'working', progress, reason: '' });
      try {
        const reply = await callBulk(progress.job, { cursor: progress.cursor, limit: BATCH });
        const next = added(progress, reply);
        if (next === null) return finish(ended(progress, reply));
        progress = next;
        const paused = 'paused' in reply ? reply.paused : null;
        pauses = paused && reply.items.length === 0 ? pauses + 1 : 0;
        if (paused && (paused.code === 'QUOTA_EXCEEDED' || pauses > MAX_PAUSES))
          return setState({ phase: 'stopped', progress, reason: paused.message });
        if (paused) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      } catch (error) {
        return setState({ phase: 'stopped', progress, reason: (error as Error).message });
      }
    }
  };

  const ask = async (job: BulkJob): Promise<void> => {
    const asked = ++question.current;
    setState({ phase: 'counting', job });
    try {
      const { matching, nextCursor } = await callBulk(job, { dryRun: true });
      if (asked !== question.current) return;
      const isNone = matching?.count === 0 && matching.isComplete;
      if (!matching || isNone || nextCursor === null)
        return setState({ phase: 'idle', message: 'Nothing matches.', isFailed: false });
      const { count: total, isComplete: isTotalKnown } = matching;
      const counts = { total, isTotalKnown, done: 0, skipped: 0, refused: [] };
      setState({
        phase: 'asking',
        progress: { job, cursor: nextCursor, ...counts },
        sample: matching.sample.map(idOf),
      });
    } catch (error) {
      if (asked !== question.current) return;
      setState({ phase: 'idle', message: (error as Error).message, isFailed: true });
    }
  };

  return {
    state,
    ask: (job) => void ask(job),
    confirm() {
      if (state.phase === 'asking' || state.phase === 'stopped') void work(state.progress);
    },
    stop,
    forget() {
      storage?.removeItem(storageKey);
      setState(IDLE);
    },
  };
}

const namespaceId = (): string | undefined => foreignNamespace() ?? session.value?.namespaceId;

function idOf(item: NonNullable<BulkReply['matching']>['sample'][number]): string {
  if ('webhookId' in item) return item.webhookId;
  return 'messageId' in item ? item.messageId : item.id;
}

function ended(progress: Progress, reply: BulkReply): Progress {
  return {
    ...progress,
    done: progress.done + reply.items.length,
    skipped: progress.skipped + ('skipped' in reply ? reply.skipped : 0),
    refused: [...progress.refused, ...reply.refused.map(({ error }) => error.message)],
  };
}

/** Returns the progress after a call, or null if nothing is left. */
function added(progress: Progress, reply: BulkReply): Progress | null {
  return reply.nextCursor === null ? null : { ...ended(progress, reply), cursor: reply.nextCursor };
}

/** Returns the state for an action that a reload or another screen interrupted. */
function restored(storageKey: string): BulkState {
  const stored = storage?.getItem(storageKey);
  if (!stored) return IDLE;
  const reason = 'The action was interrupted.';
  return { phase: 'stopped', progress: JSON.parse(stored) as Progress, reason };
}
