import type { CommandResult, ExecutionRequest, HostTarget } from '../../contracts/index.ts';
import { seconds } from '../../kit/duration.ts';
import type { ExecutionBackend } from '../../plugins/index.ts';
import type { Member, PrimaryProcess, SiblingProcess } from '../group/process-group.ts';
import type { ElsewhereBackends } from '../plugin-backends.ts';

const RUN = 'elsewhere.run';
const CANCEL = 'elsewhere.cancel';
/** The backend keeps the handler's time, and may have to fetch a plugin first; this much later it is stuck. */
const GRACE_MS = seconds(90);

interface RunQuestion {
  backend: keyof ElsewhereBackends;
  request: ExecutionRequest;
  target: HostTarget | undefined;
}

/** The hosts' sockets and the containers are the first process's: the others run what belongs there through it. */
export function relayedBackends({ primary }: Pick<SiblingProcess, 'primary'>): ElsewhereBackends {
  const relayed = (backend: keyof ElsewhereBackends): ExecutionBackend => ({
    name: backend,
    async run(request, { signal, target } = {}) {
      const question: RunQuestion = { backend, request, target };
      const cancel = (): void => primary.ask(CANCEL, request.executionId, () => {});
      signal?.addEventListener('abort', cancel, { once: true });
      try {
        const patienceMs = request.timeoutMs + GRACE_MS;
        return (await primary.call(RUN, question, { patienceMs })) as CommandResult;
      } finally {
        signal?.removeEventListener('abort', cancel);
      }
    },
    async close() {},
  });
  return { host: relayed('host'), container: relayed('container') };
}

/** The first process's end of it. */
export function answerRelayed(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  backends: ElsewhereBackends,
): void {
  const running = new Map<string, { from: Member; abort: AbortController }>();
  group.answer(RUN, async (body, from) => {
    const { backend, request, target } = body as RunQuestion;
    const abort = new AbortController();
    running.set(request.executionId, { from, abort });
    try {
      return await backends[backend].run(request, { signal: abort.signal, ...(target ? { target } : {}) });
    } finally {
      running.delete(request.executionId);
    }
  });
  group.answer(CANCEL, (executionId) => running.get(executionId as string)?.abort.abort());
  // Whoever asked is gone, and so is the caller it asked for.
  group.onLost((member) => {
    for (const { from, abort } of running.values()) if (from === member) abort.abort();
  });
}
