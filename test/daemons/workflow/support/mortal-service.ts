import { setTimeout as pause } from 'node:timers/promises';
import { familyOf } from '../../../../bench/support/process-usage.ts';
import { below, type Random } from '../../../support/random.ts';
import { type Death, type Lives, type Mortal, planDeaths } from './deaths.ts';
import { type DaemonProcess, type KillSignal, type SpawnedProcess, spawnProcess } from './process.ts';
import { RetryingClient } from './retrying-client.ts';

/** `twice`: killed again within a second, often as it starts. `throw`: by an error of its own that nothing catches. */
export type ServiceDeath = 'kill' | 'twice' | 'restart' | 'abort' | 'throw' | 'runners';

const SIGNALS: Record<Exclude<ServiceDeath, 'runners'>, KillSignal> = {
  kill: 'SIGKILL',
  twice: 'SIGKILL',
  restart: 'SIGTERM',
  abort: 'SIGABRT',
  throw: 'SIGUSR2',
};
const LONGEST_APART_MS = 800;
const THROWS = new URL('throw-on-signal.js', import.meta.url).href;

/**
 * Two crashes by fault at most: a run in flight at three is given up, whoever made them (`poisonAfter`). Ten kills weigh as
 * much as one, and a step ends between them.
 */
export function planServiceDeaths(random: Random, lives: Lives): Death<ServiceDeath>[] {
  return planDeaths(random, lives, {
    all: ['kill', 'twice', 'restart', 'runners', 'abort', 'throw'],
    rest: ['kill', 'kill', 'kill', 'twice', 'restart', 'runners'],
  });
}

export interface MortalOptions {
  dataDir: string;
  /** That of a user, `poisonAfter` included, but for what a test cannot do without. */
  config: object;
  random: Random;
}

/** A workflow service that dies in every way under its callers, and is started again as its supervisor would. */
export class MortalService implements Mortal<ServiceDeath> {
  readonly client: RetryingClient;
  readonly #options: MortalOptions;
  #process: SpawnedProcess;
  #current: Promise<DaemonProcess>;
  #hadFault = false;

  private constructor(options: MortalOptions) {
    this.#options = options;
    this.#process = this.#spawn();
    this.#current = this.#process.listening;
    this.client = new RetryingClient(async (endpoint, input) => (await this.#current).call(endpoint, input));
  }

  /** Resolves once it listens. */
  static async start(options: MortalOptions): Promise<MortalService> {
    const service = new MortalService(options);
    await service.#current;
    return service;
  }

  async die(way: ServiceDeath): Promise<void> {
    if (way === 'runners') return this.#killRunners();
    this.#current = this.#replace(way);
    await this.#current;
  }

  async #replace(way: Exclude<ServiceDeath, 'runners'>): Promise<DaemonProcess> {
    await this.#end(SIGNALS[way]);
    if (way === 'twice') {
      this.#process = this.#spawn();
      await pause(this.#options.random() * LONGEST_APART_MS);
      await this.#end('SIGKILL');
    }
    this.#process = this.#spawn();
    const daemon = await this.#process.listening;
    this.#hadFault = false;
    return daemon;
  }

  async #end(signal: KillSignal): Promise<void> {
    await this.#process.kill(signal);
    this.#hadFault ||= await this.#process.hadFault();
  }

  #spawn(): SpawnedProcess {
    const { dataDir, config } = this.#options;
    const env = { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${THROWS}` };
    return spawnProcess({ dataDir, config, hadFault: this.#hadFault, env });
  }

  /** One of the processes of plugins, or all of them. Under bubblewrap Node is the last of a chain. */
  #killRunners(): void {
    const { random } = this.#options;
    const { pid } = this.#process;
    const runners = familyOf(pid).filter((member) => member !== pid && familyOf(member).length === 1);
    const victims = random() < 0.5 ? runners : runners.slice(below(random, runners.length)).slice(0, 1);
    for (const victim of victims) killIfThere(victim);
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}
