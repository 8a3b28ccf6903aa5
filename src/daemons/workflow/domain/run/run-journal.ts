import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { redactText } from '../../../../kit/telemetry/redact.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  AttemptRecord,
  EventRecord,
  LogLineRecord,
  RunProgress,
  RunRecord,
  RunStore,
  RunWrite,
  WriteResult,
} from '../../../../store/ports/index.ts';
import type { JobPart, StepPart } from './run-parts.ts';

export interface JournalDeps {
  store: Pick<RunStore, 'write'>;
  clock: Clock;
  logger: Logger;
  /** Called after each write, to offer promoted runs and notify readers. */
  written(run: RunRecord, result: WriteResult): void;
}

/** Write buffer of a run: changes are written in order, each write with the run's fence token. */
export interface RunJournal {
  touch(part: 'run' | JobPart | StepPart): void;
  attempt(attempt: AttemptRecord): void;
  event(event: Omit<EventRecord, 'at'>): void;
  /** Redacts the message like the platform log. */
  log(line: Omit<LogLineRecord, 'at'>): void;
  take(n: number, by: string): void;
  /** Records that the owner has seen this inbox entry. */
  saw(n: number): void;
  /** Resolves to true once all changes so far are durable; false when another owner holds the run. */
  flush(): Promise<boolean>;
  /** Discards unwritten changes. */
  abandon(): void;
  /** No write has claimed the run under this fence yet. */
  readonly isClaiming: boolean;
}

const LONGEST_PAUSE_MS = 5000;
/** Maximum log lines stored per claim of a run: a loop that logs would fill the disk. */
const MOST_LINES = 10_000;

export function createRunJournal(run: RunRecord, { store, clock, logger, written }: JournalDeps): RunJournal {
  let touchedRun = false;
  let jobs = new Set<JobPart>();
  let steps = new Set<StepPart>();
  let attempts: AttemptRecord[] = [];
  let events: EventRecord[] = [];
  let logs: LogLineRecord[] = [];
  let lines = 0;
  let taken: RunWrite['taken'] = [];
  let inboxSeen = 0;
  let known = { fence: run.fence, status: run.status };
  let claimed = run.fence !== null;
  let writing: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;
  let lost = false;
  let abandoned = false;

  function isDirty(): boolean {
    return (
      touchedRun || jobs.size + steps.size + attempts.length + events.length + logs.length + taken.length > 0
    );
  }

  function collect(): RunWrite {
    const write: RunWrite = {
      seq: run.seq,
      expect: known,
      run: touchedRun ? progressOf(run) : null,
      jobs: Array.from(jobs, ({ record }) => ({ ...record })),
      steps: Array.from(steps, ({ record }) => ({ ...record })),
      attempts,
      events,
      logs,
      taken,
      inboxSeen,
      wakeParent: run.finishedAt === null ? null : run.parentId,
      at: clock.now(),
    };
    touchedRun = false;
    jobs = new Set();
    steps = new Set();
    attempts = [];
    events = [];
    logs = [];
    taken = [];
    return write;
  }

  /** Retries with backoff while the store cannot write (disk full, locked): no change may be lost. */
  async function persist(write: RunWrite): Promise<boolean> {
    for (let pause = 250; !abandoned; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        const result = await store.write(write);
        if (!result.applied) {
          lost = true;
          return false;
        }
        if (write.run) known = { fence: write.run.fence, status: write.run.status };
        claimed = true;
        written(run, result);
        return true;
      } catch (error) {
        logger.diagnostic({
          domain: 'workflow',
          event: 'run.write_failed',
          level: 'error',
          reasonCode: 'STORE_ERROR',
          message: `What happened to run ${run.id} could not be written (${messageOf(error)}); tried again`,
          outcome: 'degraded',
          error,
          evidence: { runId: run.id },
        });
        await new Promise<void>((resolve) => clock.after(pause, resolve));
      }
    }
    return false;
  }

  async function writeAfter(before: Promise<boolean> | undefined): Promise<boolean> {
    if (before) await before;
    next = undefined;
    if (lost || abandoned) return false;
    const write = collect();
    writing = persist(write).finally(() => {
      if (!next) writing = undefined;
    });
    return writing;
  }

  return {
    touch(part) {
      if (part === 'run') touchedRun = true;
      else if ('steps' in part) jobs.add(part);
      else steps.add(part);
    },
    attempt: (attempt) => attempts.push(attempt),
    event: (event) => events.push({ at: clock.now(), ...event }),
    log(line) {
      if (++lines > MOST_LINES + 1) return;
      const last = { level: 'warn', message: `More than ${MOST_LINES} lines: the rest is in the log alone` };
      const shown = { ...line, message: redactText(line.message) };
      logs.push({ at: clock.now(), ...shown, ...(lines > MOST_LINES ? last : {}) });
    },
    take: (n, by) => taken.push({ n, by }),
    saw(n) {
      inboxSeen = Math.max(inboxSeen, n);
    },
    async flush() {
      if (lost || abandoned) return false;
      if (next) return next;
      if (!isDirty()) return writing ?? true;
      if (!writing) return writeAfter(undefined);
      next = writeAfter(writing);
      return next;
    },
    abandon() {
      abandoned = true;
    },
    get isClaiming() {
      return !claimed;
    },
  };
}

function progressOf(run: RunRecord): RunProgress {
  const { status, ready, reason, rank, wakeAt, deadlineAt, fence, resumeCount, crashes, kills, inFlight } =
    run;
  const { ending, endingAt, endingHeldAt, output, error, startedAt, finishedAt } = run;
  return {
    status,
    ready,
    reason,
    rank,
    wakeAt,
    deadlineAt,
    fence,
    resumeCount,
    crashes,
    kills,
    inFlight,
    ending,
    endingAt,
    endingHeldAt,
    output,
    error,
    startedAt,
    finishedAt,
  };
}
