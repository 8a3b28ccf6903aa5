import { onTestFinished } from 'vitest';
import { isFault, spawnService } from '../../../../src/cli/supervisor/service-process.ts';
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
import { TEST_KEYS } from '../../../support/daemon.ts';
import { asDefinition, type RunReply } from './workflow.ts';

type KillSignal = 'SIGKILL' | 'SIGTERM' | 'SIGABRT';

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

/** Started as the supervisor starts it. */
export async function startProcess(
  dataDir: string,
  config: object,
  before?: DaemonProcess,
): Promise<DaemonProcess> {
  const hadFault = (await before?.hadFault()) ?? false;
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
      hadFault,
      listen: { host: '127.0.0.1', port: 0 },
    },
    env: process.env,
    onLines: (lines) => void logged.push(lines),
    now: Date.now,
  });
  const kill = async (signal: KillSignal = 'SIGKILL'): Promise<void> => {
    if (signal === 'SIGKILL') service.kill();
    else process.kill(service.pid, signal);
    await service.exited;
  };
  onTestFinished(() => kill());
  const { url, listener } = await service.listening;
  // The socket is ours too, for a next process: left open, it would hold connections to a dead one without an end.
  void service.exited.then(() => listener?.close());
  const client = createClient({ url, peer: 'workflow' });
  return {
    url,
    kill,
    log: () => Buffer.concat(logged).toString(),
    hadFault: async () => isFault(await service.exited),
    call: (endpoint, input) => client.call(endpoint, input),
    async start(definition, more = {}) {
      const body = { definition: asDefinition(definition), ...more } as never;
      return (await client.call(startRun, { body })).run.id;
    },
    run: (id) => client.call(getRun, { params: { runId: id as never } }),
    steps: async (id) => (await client.call(listRunSteps, { params: { runId: id as never } })).items,
  };
}
