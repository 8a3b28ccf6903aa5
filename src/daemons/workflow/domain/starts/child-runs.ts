import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunStore } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import { isFinal } from '../states.ts';
import type { StepRun } from '../steps/step-kind.ts';
import type { Admitted, RunAdmission } from './run-admission.ts';

/** Request of a `workflow` step to start its child run. */
export interface ChildRequest {
  parent: StepRun;
  stepId: string;
  /** Number of failed attempts of the step. Each retry after a failed attempt starts a new child run. */
  failures: number;
  workflowId: string;
  input: JsonValue;
}

/** Stores the child run of a step. Returns the existing child run if the step stored a child run before a crash. */
export type AdmitChild = (request: ChildRequest) => Promise<Admitted>;

/** Returns the function that stores child runs of registered workflows. */
export function childRuns(deps: {
  runs: Pick<RunStore, 'find'>;
  definitions: Pick<Definitions, 'require'>;
  admission: RunAdmission;
}): AdmitChild {
  const { runs, definitions, admission } = deps;
  return async ({ parent, stepId, failures, workflowId, input }) => {
    const current = await runs.find(null, parent.id);
    if (current && isFinal(current.status))
      throw new PlatformError('CONFLICT', `The run was ${current.status} before its child started.`);
    return admission.admit(
      {
        kind: 'workflow',
        workflow: definitions.require(workflowId),
        input,
        trigger: 'child',
        handlerDepth: current?.handlerDepth,
        parent: {
          id: parent.id,
          // A retry after a crash uses the same id and finds the existing child. A retry after a failed attempt uses a
          // new id and starts a new child.
          stepId: failures === 0 ? stepId : `${stepId}#${failures + 1}`,
          depth: parent.depth,
        },
      },
      { ...parent, parentSpanId: parent.spanId },
    );
  };
}
