import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import {
  type CallInput,
  type Endpoint,
  getRun,
  listRunSteps,
  type ReplyOf,
  type RunStep,
  startRun,
} from '../../../../src/contracts/index.ts';
import { createClient } from '../../../../src/http/index.ts';
import { asDefinition, type RunReply } from './workflow.ts';

/** A workflow service in a process of its own, started again and again on one folder. */
export interface DaemonProcess {
  child: ChildProcess;
  url: string;
  kill(signal?: NodeJS.Signals): Promise<void>;
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>): Promise<ReplyOf<E>>;
  start(definition: Record<string, unknown>, more?: Record<string, unknown>): Promise<string>;
  run(id: string): Promise<RunReply>;
  steps(id: string): Promise<RunStep[]>;
}

const PROGRAM = fileURLToPath(new URL('../programs/daemon.ts', import.meta.url));

export async function startProcess(dataDir: string, config: object): Promise<DaemonProcess> {
  const child = spawn(process.execPath, [PROGRAM, dataDir, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  onTestFinished(() => kill());
  const lines = createInterface({ input: child.stdout });
  const [url] = (await Promise.race([once(lines, 'line'), ended.then(() => [''])])) as [string];
  if (!url) throw new Error('the daemon ended before it listened');
  const client = createClient({ url, peer: 'workflow' });
  return {
    child,
    url,
    kill,
    call: (endpoint, input) => client.call(endpoint, input),
    async start(definition, more = {}) {
      const body = { definition: asDefinition(definition), ...more } as never;
      return (await client.call(startRun, { body })).run.id;
    },
    run: (id) => client.call(getRun, { params: { runId: id as never } }),
    steps: async (id) => (await client.call(listRunSteps, { params: { runId: id as never } })).items,
  };
}
