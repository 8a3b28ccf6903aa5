import { PlatformError } from '../../kit/errors/errors.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import type { Definitions } from './domain/definition/definitions.ts';
import type { RunStarter } from './domain/starts/run-starter.ts';
import { isFinal } from './domain/states.ts';
import type { ChildStarter } from './domain/steps/kinds/builtins.ts';

type ChildRequest = Parameters<ChildStarter['startChild']>[0];

/** Starts child runs for `workflow` steps through the run starter, which is subscribed before any run is claimed. */
export class ChildRuns implements ChildStarter {
  readonly #runs: WorkflowStore['runs'];
  #starter: { start: RunStarter['start']; require: Definitions['require'] } | undefined;

  constructor(runs: WorkflowStore['runs']) {
    this.#runs = runs;
  }

  subscribe(starter: RunStarter, definitions: Definitions): void {
    this.#starter = {
      start: (source, caller) => starter.start(source, caller),
      require: (workflowId) => definitions.require(workflowId),
    };
  }

  async startChild({ parent, stepId, failures, workflowId, input }: ChildRequest): Promise<string> {
    const current = await this.#runs.find(null, parent.id);
    if (current && isFinal(current.status))
      throw new PlatformError('CONFLICT', `The run was ${current.status} before its child started.`);
    if (!this.#starter) throw new Error('A run was claimed before the service was built.');
    const run = await this.#starter.start(
      {
        kind: 'workflow',
        workflow: this.#starter.require(workflowId),
        input,
        trigger: 'child',
        parent: {
          id: parent.id,
          // After a crash, the retry uses the same id and thus finds the child that was already started. After a failed
          // attempt, the id differs, so that a new child starts.
          stepId: failures === 0 ? stepId : `${stepId}#${failures + 1}`,
          depth: parent.depth,
        },
      },
      { ...parent, parentSpanId: parent.spanId },
    );
    return run.id;
  }
}
