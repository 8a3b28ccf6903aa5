import type {
  AttemptRecord,
  EventRecord,
  JobRecord,
  LogLineRecord,
  RunProgress,
  RunWrite,
  StepRecord,
} from '../../../../store/ports/index.ts';
import type { Write } from '../run/writes.ts';

export type Changes = Pick<RunWrite, 'run' | 'jobs' | 'steps' | 'attempts' | 'events' | 'logs' | 'taken'>;

/** Unpersisted changes of a run. A newer record of a job or step replaces the older record. */
export class WriteBuffer {
  #run: RunProgress | null = null;
  #jobs = new Map<string, JobRecord>();
  #steps = new Map<string, StepRecord>();
  #attempts: AttemptRecord[] = [];
  #events: EventRecord[] = [];
  #logs: LogLineRecord[] = [];
  #taken: RunWrite['taken'] = [];
  #isEmpty = true;

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  add(writes: readonly Write[]): void {
    for (const write of writes) this.#add(write);
    if (writes.length > 0) this.#isEmpty = false;
  }

  collect(): Changes {
    const changes: Changes = {
      run: this.#run,
      jobs: [...this.#jobs.values()],
      steps: [...this.#steps.values()],
      attempts: this.#attempts,
      events: this.#events,
      logs: this.#logs,
      taken: this.#taken,
    };
    this.#run = null;
    this.#jobs = new Map();
    this.#steps = new Map();
    this.#attempts = [];
    this.#events = [];
    this.#logs = [];
    this.#taken = [];
    this.#isEmpty = true;
    return changes;
  }

  #add(write: Write): void {
    switch (write.type) {
      case 'run':
        this.#run = write.progress;
        break;
      case 'job':
        this.#jobs.set(write.record.key, write.record);
        break;
      case 'step':
        this.#steps.set(write.key, write.record);
        break;
      case 'attempt':
        this.#attempts.push(write.record);
        break;
      case 'event':
        this.#events.push(write.record);
        break;
      case 'log':
        this.#logs.push(write.record);
        break;
      case 'taken':
        this.#taken.push({ n: write.n, by: write.by });
        break;
    }
  }
}
