import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunNotice } from '../../../../store/ports/index.ts';
import type { ActiveRun } from './active-run.ts';
import type { Cluster, EngineHost } from './ports.ts';

const POLL_MS = seconds(1);

export interface OwnerNoticesDeps {
  cluster: Cluster | undefined;
  clock: Clock;
  logger: Logger;
  active: ReadonlyMap<string, ActiveRun>;
  host: Pick<EngineHost, 'fence' | 'isWorking' | 'cancelById'>;
}

/**
 * Passes signals, ended children, pauses and cancel requests to the process that executes a run. They are stored first,
 * and each process reads those of its runs at least once a second. A call makes it read them at once.
 */
export class OwnerNotices {
  readonly #deps: OwnerNoticesDeps;
  #reading: Promise<void> | undefined;
  /** A read that has not started yet, shared by all callers. */
  #next: Promise<void> | undefined;

  constructor(deps: OwnerNoticesDeps) {
    this.#deps = deps;
  }

  /** Lets the owner of a run read its notices, if it is another process. Resolves to false if it cannot be reached. */
  async notify(owner: number | null | undefined): Promise<boolean> {
    const { cluster, host } = this.#deps;
    if (!cluster || owner == null) return true;
    if (owner === host.fence) return this.read().then(() => true);
    return cluster.notify(owner);
  }

  /** Reads all notices that were stored before the call. Never rejects, because the next read repeats a failed one. */
  read(): Promise<void> {
    if (!this.#deps.cluster) return Promise.resolve();
    if (!this.#reading) return this.#start(this.#deps.cluster);
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      return this.read();
    });
    return this.#next;
  }

  /**
   * Reads notices once per second until the returned function is called. Used while the process drains, because its
   * ticker has then stopped.
   */
  keepReading(): () => Promise<void> {
    const { cluster, clock } = this.#deps;
    if (!cluster) return async () => {};
    const stop = every(clock, POLL_MS, () => void this.read());
    return async () => {
      stop();
      await (this.#next ?? this.#reading);
    };
  }

  #start(cluster: Cluster): Promise<void> {
    this.#reading = this.#readNow(cluster)
      .catch((error) => this.#deps.logger.error(`Notices could not be read: ${messageOf(error)}`, { error }))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #readNow({ store }: Cluster): Promise<void> {
    const { active, clock, host } = this.#deps;
    const held = [...active.values()];
    const seqs = held.map(({ run }) => run.seq);
    const { cancelled, paused, notices } = await store.unread(host.fence, seqs, clock.now());
    if (host.isWorking) for (const one of held) one.setPaused(paused.has(one.run.id));
    for (const notice of notices) this.#deliver(notice);
    if (notices.length > 0) await store.read(host.fence, notices);
    await Promise.all(cancelled.map((id) => host.cancelById(id)));
  }

  #deliver({ id, entries, endedChildren }: RunNotice): void {
    const one = this.#deps.active.get(id);
    for (const entry of entries) one?.poke({ entry });
    one?.poke({ endedChildren });
  }
}
