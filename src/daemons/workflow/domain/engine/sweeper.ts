import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Cluster, EngineDeps, EngineHost } from './ports.ts';
import { recover } from './recovery.ts';

const LOOK_MS = 500;
/** Looks without a dead process after which a sweep is repeated. */
const MAX_IDLE_LOOKS = 6;

/** Recovers the runs of dead processes while this process works. Every process of the store does so. */
export class Sweeper {
  readonly #deps: EngineDeps;
  readonly #cluster: Cluster;
  readonly #host: Pick<EngineHost, 'isWorking' | 'requestTick' | 'cancelById'>;
  #cancelTimer: () => void = () => {};
  #sweeping: Promise<void> | undefined;
  #idleLooks = 0;

  constructor(
    deps: EngineDeps,
    cluster: Cluster,
    host: Pick<EngineHost, 'isWorking' | 'requestTick' | 'cancelById'>,
  ) {
    this.#deps = deps;
    this.#cluster = cluster;
    this.#host = host;
  }

  start(): void {
    // Members report an ended member when they renew their lease. The timer finds one that its supervisor has ended, and
    // repeats sweeps that failed or that a dead process began.
    this.#cluster.onEnded(() => this.#sweep());
    this.#lookLater();
  }

  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#sweeping;
  }

  #lookLater(): void {
    this.#cancelTimer = this.#deps.clock.after(LOOK_MS, () => {
      void this.#sweep(MAX_IDLE_LOOKS).then(() => {
        if (this.#host.isWorking) this.#lookLater();
      });
    });
  }

  /** Never rejects, because the next sweep repeats a failed one. */
  #sweep(maxIdleLooks = 0): Promise<void> {
    this.#sweeping ??= this.#sweepNow(maxIdleLooks)
      .catch((error) => {
        const message = `The runs of ended services could not be recovered: ${messageOf(error)}`;
        this.#deps.logger.error(message, { error });
      })
      .finally(() => {
        this.#sweeping = undefined;
      });
    return this.#sweeping;
  }

  async #sweepNow(maxIdleLooks: number): Promise<void> {
    const { store, clock } = this.#deps;
    if (!this.#host.isWorking) return;
    const ended = await this.#cluster.store.endDead(clock.now());
    if (ended === 0 && ++this.#idleLooks < maxIdleLooks) return;
    this.#idleLooks = 0;
    const isAnyRecovered = await recover(this.#deps);
    if (isAnyRecovered) this.#host.requestTick();
    // The dead processes may not have completed these cancellations.
    for (const id of await store.boots.leftToCancel()) void this.#host.cancelById(id);
  }
}
