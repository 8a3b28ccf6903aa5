import type { Permissions, ServiceName } from '../../../../../contracts/index.ts';

/** Services without which a handler fails as a whole. */
export type NeededService = Extract<ServiceName, 'state' | 'workflow'>;

/** The service behind each part of `ctx`. */
const BEHIND: Readonly<Record<string, NeededService>> = {
  state: 'state',
  cache: 'state',
  storage: 'state',
  vectorStore: 'state',
  workflows: 'workflow',
  jobs: 'workflow',
};

/** Consecutive runs without a call that show that a plugin does not need a service. */
const QUIET_RUNS = 50;

/**
 * Tracks which permitted services plugins actually use: `state` and `cache` are permitted by default, so the
 * permission says little. @spec docs/decisions/0004
 */
export class ServiceUse {
  /** Runs since the last use, by plugin and service. */
  readonly #quietRuns = new Map<string, Record<NeededService, number>>();

  /** A handler called `ctx.<part>`. */
  noteCall(pluginId: string, part: string): void {
    const service = Object.hasOwn(BEHIND, part) ? BEHIND[part] : undefined;
    if (service) this.#runsOf(pluginId)[service] = 0;
  }

  /** A handler of the plugin succeeded. */
  noteRun(pluginId: string): void {
    const runs = this.#runsOf(pluginId);
    runs.state++;
    runs.workflow++;
  }

  /** Resets after a reload: other code may use other services. */
  forget(): void {
    this.#quietRuns.clear();
  }

  /** Services that the plugin may call, except those it has shown not to need. */
  neededBy(pluginId: string, { platform }: Permissions): NeededService[] {
    const needed: NeededService[] = [];
    if (!platform || platform.state || platform.cache || platform.storage || platform.vectorStore)
      needed.push('state');
    if (platform?.workflows || platform?.jobs) needed.push('workflow');
    const runs = this.#quietRuns.get(pluginId);
    return needed.filter((service) => (runs?.[service] ?? 0) < QUIET_RUNS);
  }

  #runsOf(pluginId: string): Record<NeededService, number> {
    let runs = this.#quietRuns.get(pluginId);
    if (!runs) {
      runs = { state: 0, workflow: 0 };
      this.#quietRuns.set(pluginId, runs);
    }
    return runs;
  }
}
