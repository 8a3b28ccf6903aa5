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
  /** Number of failed attempts of the step. After each of them, a new child starts. */
  failures: number;
  workflowId: string;
  input: JsonValue;
}

/** Stores the child run of a step, or finds the child that the step started before. */
export type AdmitChild = (request: ChildRequest) => Promise<Admitted>;

/** Creates the function that admits child runs of registered workflows. */
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
        parent: {
          id: parent.id,
          // After a crash, the retry uses the same id and thus finds the child that was already started. After a failed
          // attempt, another id starts a new child.
          stepId: failures === 0 ? stepId : `${stepId}#${failures + 1}`,
          depth: parent.depth,
        },
      },
      { ...parent, parentSpanId: parent.spanId },
    );
  };
}
