import type { ServiceName } from '../contracts/index.ts';
import type { DaemonStart } from '../daemons/process-protocol.ts';
import type { Environment } from '../kit/config/config.ts';
import type { Random } from '../kit/security/random.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { SupervisorEvent } from './control-protocol.ts';
import type { waitHealthy } from './health.ts';
import type { ServiceProcess, SpawnOptions } from './service-process.ts';

/** Unexpected end of a process. `hadFault` means that it crashed by itself, rather than being killed from outside. */
export interface Crash {
  pid: number;
  hadFault: boolean;
}

export interface ManagedServiceOptions {
  name: ServiceName;
  /** Number of the process, if it is a further process of the service. */
  number?: number;
  clock: Clock;
  random: Random;
  spawn: (options: SpawnOptions) => ServiceProcess;
  waitHealthy: typeof waitHealthy;
  /** Returns the start message and the environment of the next process. Called before each start. */
  describe: () => { start: DaemonStart; env: Environment };
  /** Whether the service has a single process. A single process can pass its listening socket to the next process. */
  keepsPort: () => boolean;
  onLines: (lines: Buffer) => void;
  onEvent: (event: SupervisorEvent) => void;
  onListening: (url: string) => void;
  /** Callback that is called when a process ends although it was not stopped. */
  onCrash?: ((crash: Crash) => void) | undefined;
  /** Callback that is called when a process starts or ends. */
  onProcess: () => void;
}
