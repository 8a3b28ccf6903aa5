import { onTestFinished } from 'vitest';
import {
  type CallInput,
  type Endpoint,
  getRun,
  listRunSteps,
  PlatformConfig,
  type ReplyOf,
  type RunStep,
  startRun,
} from '../../../../src/contracts/index.ts';
import { createClient } from '../../../../src/http/index.ts';
import { isFault, spawnService } from '../../../../src/supervisor/service-process.ts';
import { TEST_KEYS } from '../../../support/daemon.ts';
import { asDefinition, type RunReply } from './workflow.ts';

export type KillSignal = 'SIGKILL' | 'SIGTERM' | 'SIGABRT' | 'SIGUSR2';

/** A workflow service in a process of its own, started again and again on one folder. */
export interface DaemonProcess {
  url: string;
  kill(signal?: KillSignal): Promise<void>;
  /** What it has logged. */
  log(): string;
  /** Whether it died of a fault of its own, as its supervisor sees it. */
  hadFault(): Promise<boolean>;
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>): Promise<ReplyOf<E>>;
  start(definition: Record<string, unknown>, more?: Record<string, unknown>): Promise<string>;
  run(id: string): Promise<RunReply>;
  steps(id: string): Promise<RunStep[]>;
}

/** The process before it listens, and after. */
export interface SpawnedProcess {
  readonly pid: number;
  /** Rejects when it ends before it listens. */
  readonly listening: Promise<DaemonProcess>;
  kill(signal?: KillSignal): Promise<void>;
  hadFault(): Promise<boolean>;
}

/** Resolves once it listens. */
export async function startProcess(
  dataDir: string,
  config: object,
  before?: DaemonProcess,
): Promise<DaemonProcess> {
  const hadFault = (await before?.hadFault()) ?? false;
  return spawnProcess({ dataDir, config, hadFault }).listening;
}

export interface SpawnedOptions {
  dataDir: string;
  config: object;
  /** A process died of a fault of its own since one was ready. */
  hadFault: boolean;
  env?: NodeJS.ProcessEnv;
}

/** Started as the supervisor starts it. */
export function spawnProcess(options: SpawnedOptions): SpawnedProcess {
  const { dataDir, config, env = process.env } = options;
  const logged: Buffer[] = [];
  const service = spawnService({
    name: 'workflow',
    start: {
      config: PlatformConfig.parse(config),
      profile: 'development',
      projectDir: dataDir,
      configFile: null,
      dataDir,
      keys: TEST_KEYS,
      operator: null,
      peers: {},
      hadFault: options.hadFault,
      listen: { host: '127.0.0.1', port: 0 },
    },
    env,
    onLines: (lines) => void logged.push(lines),
    now: Date.now,
  });
  const kill = async (signal: KillSignal = 'SIGKILL'): Promise<void> => {
    if (signal === 'SIGKILL') service.kill();
    else process.kill(service.pid, signal);
    await service.exited;
  };
  const hadFault = async (): Promise<boolean> => isFault(await service.exited);
  onTestFinished(() => kill());
  const listening = service.listening.then(({ url, listener }): DaemonProcess => {
    // The socket is ours too, for a next process: left open, it would hold connections to a dead one without an end.
    void service.exited.then(() => listener?.close());
    return { ...clientOf(url), kill, hadFault, log: () => Buffer.concat(logged).toString() };
  });
  // One that is killed as it starts has no caller who waits for it.
  listening.catch(() => {});
  return { pid: service.pid, listening, kill, hadFault };
}

function clientOf(url: string): Omit<DaemonProcess, 'kill' | 'hadFault' | 'log'> {
  const client = createClient({ url, peer: 'workflow' });
  return {
    url,
    call: (endpoint, input) => client.call(endpoint, input),
    async start(definition, more = {}) {
      return (await client.call(startRun, { body: { definition: asDefinition(definition), ...more } })).run
        .id;
    },
    run: (runId) => client.call(getRun, { params: { runId } }),
    steps: async (runId) => (await client.call(listRunSteps, { params: { runId } })).items,
  };
}
