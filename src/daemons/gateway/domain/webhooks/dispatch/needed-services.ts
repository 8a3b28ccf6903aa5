import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { Peers } from '../../../../peers.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';
import type { NeededService, ServiceUse } from './service-use.ts';

export interface NeededServicesDeps {
  peers: Pick<Peers, 'known'>;
  use: Pick<ServiceUse, 'neededBy'>;
  logger: Logger;
  /**
   * Callback that is called when an unavailable service becomes available again, so that delayed deliveries can run.
   */
  onBack: () => void;
  /**
   * Clock for the probes. Defaults to the wall clock even in tests, because the probed processes do not use the test
   * clock.
   */
  clock?: Clock;
}

/** Cache TTL of a successful probe, in ms. */
const FRESH_MS = 250;
const PROBE_TIMEOUT_MS = seconds(2);
const PROBE_AGAIN_MS = 500;

interface Probed {
  okUntil: number;
  isUnavailable: boolean;
  probing: Promise<void> | undefined;
  /**
   * Stops the timer for the next probe. The timer runs only while the service is unavailable and no probe is in flight.
   */
  stopTimer: () => void;
}

/** Tracks whether the services that a plugin's handlers use are available. @spec docs/webhooks.md "Async" */
export class NeededServices {
  readonly #deps: Required<NeededServicesDeps>;
  readonly #probed = new Map<NeededService, Probed>();
  #isClosed = false;

  constructor(deps: NeededServicesDeps) {
    this.#deps = { clock: systemClock, ...deps };
  }

  /**
   * Returns true if a service that the plugin needs failed its last probe. Sends no request, because a timer repeats
   * failed probes.
   */
  isUnavailable(target: DeclaredWebhook): boolean {
    return this.#neededBy(target).some((name) => this.#stateOf(name).isUnavailable);
  }

  /**
   * Probes the services that the plugin needs if their last probe is outdated. Resolves when `isUnavailable` is up to
   * date. Returns undefined if no probe is needed.
   */
  confirm(target: DeclaredWebhook): undefined | Promise<unknown> {
    const needed = this.#neededBy(target).map((name) => ({ name, state: this.#stateOf(name) }));
    if (needed.some(({ state }) => state.isUnavailable)) return undefined;
    const now = this.#deps.clock.monotonic();
    const unsure = needed.filter(({ state }) => state.okUntil <= now);
    if (unsure.length === 0) return undefined;
    return Promise.all(unsure.map(({ name, state }) => this.#probe(name, state)));
  }

  close(): void {
    this.#isClosed = true;
    for (const { stopTimer } of this.#probed.values()) stopTimer();
  }

  /**
   * Returns the services that the plugin needs. Omits services without a known URL, so that no delivery waits for them.
   */
  #neededBy({ plugin }: DeclaredWebhook): NeededService[] {
    const { peers, use } = this.#deps;
    const known = peers.known();
    return use.neededBy(plugin.id, plugin.manifest.permissions).filter((name) => known[name] !== undefined);
  }

  #stateOf(name: NeededService): Probed {
    let state = this.#probed.get(name);
    if (!state) {
      state = { okUntil: 0, isUnavailable: false, probing: undefined, stopTimer: () => {} };
      this.#probed.set(name, state);
    }
    return state;
  }

  #probe(name: NeededService, state: Probed): Promise<void> {
    state.probing ??= this.#ask(name).then((isThere) => {
      state.probing = undefined;
      if (!this.#isClosed) this.#note(name, state, isThere);
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

  #note(name: NeededService, state: Probed, isThere: boolean): void {
    const { clock, logger, onBack } = this.#deps;
    const wasUnavailable = state.isUnavailable;
    state.isUnavailable = !isThere;
    if (isThere) state.okUntil = clock.monotonic() + FRESH_MS;
    else state.stopTimer = clock.after(PROBE_AGAIN_MS, () => void this.#probe(name, state));
    if (!isThere && !wasUnavailable)
      logger.warn(
        `The ${name} service is unavailable: async deliveries of plugins that need it wait, sync ones get a 503`,
      );
    if (isThere && wasUnavailable) {
      logger.info(`The ${name} service is available again: deliveries that waited for it run now`);
      onBack();
    }
  }
}
