import { messageOf } from '../../kit/errors/errors.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import { hours } from '../../kit/time/duration.ts';
import { runScript } from '../../plugins/scripts/run-script.ts';
import { requireScriptSandbox } from '../../plugins/scripts/script-sandbox.ts';
import { Workspaces } from '../../plugins/scripts/workspaces.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createFairSlots, type FairSlots } from './domain/effects/fair-slots.ts';
import { isFinal } from './domain/states.ts';
import type { RunScript } from './domain/steps/kinds/run.ts';
import { SandboxCheck } from './sandbox-check.ts';

const SWEEP_MS = hours(1);

/** Builds the services that run scripts of steps. Their limits are those of plugin processes. */
export function scriptServices(
  resources: Resources,
  { runs }: Pick<WorkflowStore, 'runs'>,
  stack: AsyncDisposableStack,
) {
  const { config, dataDir, logger } = resources;
  const { maxProcesses, memoryMb } = config.execution.worker;
  const workspaces = new Workspaces({ dataDir, logger });
  const slots = createFairSlots(maxProcesses);
  const closing = stack.adopt(new AbortController(), (controller) => controller.abort(stopping()));

  const run: RunScript = async ({ script: text, begun, ...call }) => {
    const signal = AbortSignal.any([call.signal, closing.signal]);
    const leave = await enter(slots, call.tenantId, signal);
    try {
      begun();
      const limited = { ...call, text, signal, memoryMb: Math.min(memoryMb, call.memoryMb ?? memoryMb) };
      return await runScript(limited, { workspaces, places: resources });
    } finally {
      leave();
    }
  };
  // Other nodes can end a run that has a folder here, so the folders of ended runs are swept.
  const sweep = (): void => {
    const isOver = async (id: string): Promise<boolean> => {
      const found = await runs.find(null, id);
      return !found || isFinal(found.status);
    };
    workspaces
      .sweep(isOver)
      .catch((error) => logger.warn(`Working folders could not be swept: ${messageOf(error)}`));
  };
  sweep();
  stack.defer(every(systemClock, SWEEP_MS, sweep));
  return {
    runScript: run,
    workspaces,
    // Each script checks again when it starts, because the paths that it must not read can have changed.
    sandboxCheck: new SandboxCheck(() => requireScriptSandbox(resources)),
  };
}

const stopping = (): Error => new Error('The workflow service is stopping.');

/** Waits for a slot. Returns the function that releases it. Throws the reason of an abort. */
function enter(slots: FairSlots, tenantId: string, signal: AbortSignal): Promise<() => void> {
  signal.throwIfAborted();
  const leave = (): void => slots.release(tenantId);
  if (slots.tryTake(tenantId)) return Promise.resolve(leave);
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      withdraw();
      reject(signal.reason);
    };
    const withdraw = slots.ask(tenantId, () => {
      signal.removeEventListener('abort', giveUp);
      resolve(leave);
    });
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

export type ScriptServices = ReturnType<typeof scriptServices>;
