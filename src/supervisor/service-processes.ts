import type { ServiceName } from '../contracts/index.ts';
import type { PeerUrls, PortShare } from '../daemons/process-protocol.ts';
import type { SandboxPreference } from '../plugins/index.ts';
import type { ProcessStatus, ServiceStatus } from './control-protocol.ts';
import { ManagedService } from './managed-service.ts';
import type { ManagedServiceOptions } from './managed-service-options.ts';

export interface ServiceProcessesOptions extends Omit<ManagedServiceOptions, 'keepsPort' | 'number'> {
  /** Number of processes to start next time. */
  count: () => number;
}

/** Runs the processes of one service. Several processes share the port of the service. @spec docs/decisions/0223 */
export class ServiceProcesses {
  readonly name: ServiceName;
  readonly #options: ServiceProcessesOptions;
  readonly #first: ManagedService;
  #further: ManagedService[] = [];
  /** Whether the first process was ready since the last call of `start`. Later processes then join the service. */
  #hasStarted = false;

  constructor(options: ServiceProcessesOptions) {
    this.name = options.name;
    this.#options = options;
    this.#first = this.#manage(1);
  }

  /** Resolves when all processes are ready. The first process prepares the store and the port for the others. */
  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.count() - 1 }, (_, index) => index + 2);
    this.#further = numbers.map((number) => this.#manage(number));
    this.#hasStarted = false;
    await this.#first.start();
    this.#hasStarted = true;
    const starts = this.#further.map((process) => process.start());
    try {
      await Promise.all(starts);
    } catch (error) {
      await this.stop();
      await Promise.allSettled(starts);
      throw error;
    }
  }

  async stop(willRestart = false): Promise<void> {
    await Promise.all(this.#all().map((process) => process.stop(willRestart)));
  }

  kill(): void {
    for (const process of this.#all()) process.kill();
  }

  sendPeers(urls: PeerUrls): void {
    for (const process of this.#all()) process.sendPeers(urls);
  }

  /** Returns the state of the first process and the states of all further processes. */
  status(): ServiceStatus {
    const status = this.#first.status();
    if (this.#further.length === 0) return status;
    return {
      ...status,
      furtherProcesses: this.#further.map((process, index) => statusOf(process, index + 2)),
    };
  }

  sandboxPreference(): SandboxPreference | null {
    return this.#first.sandboxPreference();
  }

  #all(): ManagedService[] {
    return [this.#first, ...this.#further];
  }

  #manage(number: number): ManagedService {
    const { count, describe, onListening, ...options } = this.#options;
    return new ManagedService({
      ...options,
      ...(number === 1 ? {} : { number }),
      describe: () => {
        const { start, env } = describe();
        const portShare = this.#portShare(number);
        if (!portShare) return { start, env };
        const { port } = this.#first.status();
        // Further processes use the port of the first process, even if port 0 is configured.
        const listen = number === 1 ? start.listen : { ...start.listen, port: port ?? start.listen.port };
        return { start: { ...start, listen, portShare }, env };
      },
      keepsPort: () => count() === 1,
      onListening: (url) => number === 1 && onListening(url),
    });
  }

  #portShare(number: number): PortShare | undefined {
    return this.#further.length === 0 ? undefined : { number, joins: this.#hasStarted };
  }
}

function statusOf(process: ManagedService, number: number): ProcessStatus {
  const { state, pid, uptimeMs, restarts, nextStartAt, lastExit } = process.status();
  return { number, state, pid, uptimeMs, restarts, nextStartAt, lastExit };
}
