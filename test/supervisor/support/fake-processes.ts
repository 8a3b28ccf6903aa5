import { setImmediate } from 'node:timers/promises';
import type { ManagedServiceOptions } from '../../../src/supervisor/managed-service-options.ts';
import type { ExitInfo } from '../../../src/supervisor/service-process.ts';

export interface FakeProcess {
  wasKilled: boolean;
  exit(info: Partial<ExitInfo>): void;
}

export interface FakeProcesses extends Pick<ManagedServiceOptions, 'spawn' | 'waitHealthy'> {
  /** The process started last. */
  current(): FakeProcess;
  /** Whether each process was told of a fault of the ones before. */
  faults(): boolean[];
  /** Resolves when all promises settled by an exit or a timer have been handled. */
  settled(): Promise<void>;
}

/** Processes that listen at once and ignore requests to stop. The first `hangs` of them never listen. */
export function fakeProcesses({ hangs = 0 } = {}): FakeProcesses {
  const started: FakeProcess[] = [];
  const faults: boolean[] = [];
  return {
    spawn({ start }) {
      const exited = Promise.withResolvers<ExitInfo>();
      const fake: FakeProcess = {
        wasKilled: false,
        exit: (info) => exited.resolve({ code: null, signal: null, reportedFailure: false, ...info }),
      };
      started.push(fake);
      faults.push(start.hadFault === true);
      const port = start.listen.port || 40_000;
      const url = `http://127.0.0.1:${port}`;
      const listening = { url, ownUrl: url, port, listener: undefined };
      return {
        pid: 1000 + started.length,
        listening: started.length > hangs ? Promise.resolve(listening) : new Promise(() => {}),
        exited: exited.promise,
        sandbox: () => null,
        sendPeers() {},
        becomeUnready() {},
        stop() {},
        kill() {
          fake.wasKilled = true;
          fake.exit({ signal: 'SIGKILL' });
        },
      };
    },
    waitHealthy: async () => {},
    current: () => started.at(-1)!,
    faults: () => faults,
    settled: async () => {
      await setImmediate();
    },
  };
}
