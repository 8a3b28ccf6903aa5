import { duplexPair } from 'node:stream';
import { onTestFinished, vi } from 'vitest';
import { Permissions } from '../../src/contracts/index.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { RUNNER_LIMITS } from '../../src/plugins/backends/worker/index.ts';
import { Pool, type PoolDeps } from '../../src/plugins/backends/worker/pool.ts';
import { RunnerProcess } from '../../src/plugins/backends/worker/runner-process.ts';
import type { SpawnEvents, SpawnedRunner } from '../../src/plugins/backends/worker/spawn-runner.ts';
import type { RunOptions } from '../../src/plugins/index.ts';
import type { ToRunner } from '../../src/plugins/runner/protocol.ts';
import { eventually, requestFor } from './support.ts';

/** A runner in this process. It runs one handler at a time, which ends when the test says so. */
export class ScriptedRunner {
  /** Ids of the executions that wait in the process. */
  readonly held: string[] = [];
  running: string | undefined;
  isAlive = true;
  /** Number of calls that were to start while another one ran. */
  overlaps = 0;
  /** Whether plugin code blocks the process, so that it reads no frames. */
  isBlocked = false;
  /** Frames that were written to the process after its end. Such a write fails for a real process. */
  late = '';
  onKilled = (): void => {};
  readonly #end = duplexPair();
  readonly #ran: string[];
  readonly #events: SpawnEvents;

  constructor(events: SpawnEvents, ran: string[]) {
    this.#events = events;
    this.#ran = ran;
    let text = '';
    const [, own] = this.#end;
    own.setEncoding('utf8').on('data', (piece: string) => {
      if (!this.isAlive) this.late += piece;
      text += piece;
      this.#read = () => {
        const lines = text.split('\n');
        text = lines.pop()!;
        for (const line of lines) this.#take(JSON.parse(line) as ToRunner);
      };
      if (!this.isBlocked) this.#read();
    });
  }

  get spawned(): SpawnedRunner {
    return {
      channel: this.#end[0],
      pid: undefined,
      memoryFolders: [],
      stderrTail: () => '',
      leave: () => this.die(),
      kill: () => {
        this.die('SIGKILL');
        this.onKilled();
      },
    };
  }

  /** Ends the running handler. */
  finish(): void {
    const executionId = this.running;
    if (executionId === undefined || !this.isAlive) return;
    this.send({ type: 'result', tookMs: 0, executionId, result: { exitCode: 0, result: executionId } });
    this.startNext();
  }

  /** Starts the next call, and reads the frames that arrived while the process was blocked. */
  startNext(): void {
    this.running = undefined;
    const next = this.held.shift();
    if (next !== undefined) this.#start(next);
    this.unblock();
  }

  /** Reads the frames that arrived while the process was blocked. */
  unblock(): void {
    this.isBlocked = false;
    this.#read();
  }

  /** Ends the running handler, whose code then blocks the process. */
  finishAndBlock(): void {
    const executionId = this.running;
    this.isBlocked = true;
    this.running = undefined;
    this.send({ type: 'result', tookMs: 0, executionId, result: { exitCode: 0, result: executionId } });
  }

  die(signal: string | null = null): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.#end[1].end();
    this.#end[0].once('end', () => setImmediate(() => this.#events.onExit(signal ? null : 5, signal)));
  }

  /** Sends a frame, also one that an honest runner would not send. */
  send(frame: object): void {
    if (this.isAlive) this.#end[1].write(`${JSON.stringify(frame)}\n`);
  }

  #read = (): void => {};

  #take(frame: ToRunner): void {
    if (frame.type === 'init') this.send({ type: 'ready', protocol: 1 });
    if (frame.type === 'execute') {
      if (this.running === undefined) this.#start(frame.executionId);
      else if (frame.ahead) this.held.push(frame.executionId);
      else this.overlaps++;
    }
    if (frame.type === 'recall' && this.held.includes(frame.executionId)) {
      this.held.splice(this.held.indexOf(frame.executionId), 1);
      this.send({ type: 'returned', executionId: frame.executionId });
    }
    if (frame.type === 'cancel' && this.running === frame.executionId) this.finish();
  }

  #start(executionId: string): void {
    this.running = executionId;
    this.#ran.push(executionId);
    this.send({ type: 'loaded' });
    this.send({ type: 'started', executionId });
  }
}

/** A pool of scripted runners. */
export function scriptedPool(options: Partial<PoolDeps> = {}) {
  const runners: ScriptedRunner[] = [];
  /** Ids of the executions whose handlers have started, in order. */
  const ran: string[] = [];
  const clock = manualClock();
  const plugin = { id: 'scripted', version: '1.0.0', root: '/' };
  const pool = new Pool({
    ...{ pluginId: 'scripted', maxProcesses: 1, separateTenants: false, concurrency: 1, idleMs: 60_000 },
    ...{ maxQueue: 512, clock, onEmpty: () => {} },
    prepare: async () => ({}) as never,
    start: (_, events) =>
      new RunnerProcess(
        {
          spawn(spawnEvents) {
            const runner = new ScriptedRunner(spawnEvents, ran);
            runners.push(runner);
            return runner.spawned;
          },
          ...{ plugin, permissions: Permissions.parse({}), memoryMb: 256, limits: RUNNER_LIMITS },
          ...{ services: {}, sink: { write: () => {} }, logger: silentLogger, clock, code: undefined },
        },
        events,
      ),
    ...options,
  });
  return {
    pool,
    clock,
    ran,
    alive: () => runners.filter(({ isAlive }) => isAlive),
    run(executionId: string, runOptions: RunOptions = {}, request = {}): Promise<unknown> {
      const call = pool.run(requestFor('h.js#h', { executionId, ...request }), runOptions);
      const result = call.then((outcome) => outcome.result);
      // A test that does not await the call leaves it to the end of the pool.
      result.catch(() => {});
      return result;
    },
  };
}

/** A pool whose processes have started, and whose handler is known to be quick. */
export async function startWarmPool(options: Parameters<typeof scriptedPool>[0] = {}) {
  const scripted = scriptedPool(options);
  const { run, alive, pool, ran } = scripted;
  const first = Array.from({ length: options.maxProcesses ?? 1 }, (_, index) => run(`warm ${index}`));
  await eventually(() => alive().length === first.length && alive().every(({ running }) => running));
  for (const runner of alive()) runner.finish();
  await Promise.all(first);
  ran.length = 0;
  onTestFinished(() => {
    void pool.close();
  });
  return scripted;
}

/** A warm pool whose calls seem to take no time until `passTime` is called. */
export async function startStopped(options: Parameters<typeof scriptedPool>[0] = {}) {
  const scripted = await startWarmPool(options);
  let now = performance.now();
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => spy.mockRestore());
  return {
    ...scripted,
    passTime(ms: number) {
      now += ms;
    },
  };
}

/** Lets the pool and its runners exchange the frames that are on their way. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
}
