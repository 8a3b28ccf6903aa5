import { type Clock, systemClock } from '../../../../kit/clock.ts';
import { seconds } from '../../../../kit/duration.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { Peers } from '../../../peers.ts';
import type { NeededService, ServiceUse } from './service-use.ts';
import type { DeclaredWebhook } from './targets.ts';

export interface NeededServicesDeps {
  peers: Pick<Peers, 'known'>;
  use: Pick<ServiceUse, 'neededBy'>;
  logger: Logger;
  /** A service answers again: held deliveries may run. */
  onBack: () => void;
  /** Of the machine: it paces requests to other processes. */
  clock?: Clock;
}

/** How long an answer counts. A handler takes a service for granted that answered this recently. */
const FRESH_MS = 250;
const PROBE_TIMEOUT_MS = seconds(2);
const PROBE_AGAIN_MS = 500;

interface Probed {
  okUntil: number;
  isAway: boolean;
  probing: Promise<boolean> | undefined;
}

/** Tells whether the services answer that a plugin's handlers need. @spec docs/webhooks.md "Async" */
export class NeededServices {
  readonly #deps: Required<NeededServicesDeps>;
  readonly #probed = new Map<NeededService, Probed>();
  #isClosed = false;

  constructor(deps: NeededServicesDeps) {
    this.#deps = { clock: systemClock, ...deps };
  }

  /** At once where nothing has to be asked. Services that this gateway was not told of are not waited for. */
  areThere({ plugin }: DeclaredWebhook): true | Promise<boolean> {
    const known = this.#deps.peers.known();
    const now = this.#deps.clock.monotonic();
    const unsure = this.#deps.use
      .neededBy(plugin.id, plugin.manifest.permissions)
      .filter((name) => known[name] !== undefined && this.#stateOf(name).okUntil <= now);
    if (unsure.length === 0) return true;
    return Promise.all(unsure.map((name) => this.#probe(name))).then((answers) => answers.every(Boolean));
  }

  close(): void {
    this.#isClosed = true;
  }

  #stateOf(name: NeededService): Probed {
    let state = this.#probed.get(name);
    if (!state) {
      state = { okUntil: 0, isAway: false, probing: undefined };
      this.#probed.set(name, state);
    }
    return state;
  }

  #probe(name: NeededService): Promise<boolean> {
    const state = this.#stateOf(name);
    state.probing ??= this.#ask(name)
      .then((isThere) => this.#note(name, state, isThere))
      .finally(() => {
        state.probing = undefined;
      });
    return state.probing;
  }

  async #ask(name: NeededService): Promise<boolean> {
    const url = this.#deps.peers.known()[name];
    if (url === undefined) return true;
    try {
      const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  #note(name: NeededService, state: Probed, isThere: boolean): boolean {
    const { clock, logger, onBack } = this.#deps;
    const wasAway = state.isAway;
    state.isAway = !isThere;
    if (isThere) state.okUntil = clock.monotonic() + FRESH_MS;
    else clock.after(PROBE_AGAIN_MS, () => void (this.#isClosed || this.#probe(name)));
    if (!isThere && !wasAway)
      logger.warn(
        `The ${name} service does not answer: async deliveries of plugins that need it wait, sync ones are answered 503`,
      );
    if (isThere && wasAway) {
      logger.info(`The ${name} service answers again: deliveries that waited for it run`);
      onBack();
    }
    return isThere;
  }
}
