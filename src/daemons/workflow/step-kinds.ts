import type { KindOf } from './domain/definition/compiled-workflow.ts';
import { unusableSchema } from './domain/definition/input-schema.ts';
import { OPENING } from './domain/definition/templates.ts';
import { approvalStep } from './domain/steps/kinds/approval.ts';
import { setStep, signalStep, waitStep, workflowStep } from './domain/steps/kinds/builtins.ts';
import { type Handlers, handlerStep, JOB_PREFIX } from './domain/steps/kinds/handlers.ts';
import { type HttpCall, httpStep } from './domain/steps/kinds/http.ts';
import { type RunScript, runStep } from './domain/steps/kinds/run.ts';
import type { StepKind } from './domain/steps/step-kind.ts';

/** Matches `<plugin>/<command>`, where the plugin id can have a scope, as in `@scope/plugin`. */
const HANDLER = /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*\/[^/]+$/;

/** Returns the function that finds the step kind for a `uses` value. */
export function stepKinds(deps: {
  http: HttpCall;
  handlers: Handlers;
  runScript: RunScript;
  now(): number;
}): KindOf {
  const plugin = handlerStep(deps.handlers);
  const builtins = new Map<string, StepKind>(
    [
      setStep,
      waitStep,
      approvalStep({ schemaFault: unusableSchema, opening: OPENING }),
      signalStep,
      workflowStep,
      httpStep(deps.http, deps.now),
      runStep(deps.runScript),
    ].map((kind) => [kind.name, kind]),
  );
  return (uses) => {
    const name = uses.startsWith(JOB_PREFIX) ? uses.slice(JOB_PREFIX.length) : uses;
    return builtins.get(uses) ?? (HANDLER.test(name) ? plugin : undefined);
  };
}

/** Returns step kinds that can only check definitions. Running a step of such a kind throws an error. */
export function checkingKinds(): KindOf {
  const refuse = (): never => {
    throw new Error('A step was run where definitions are only checked.');
  };
  return stepKinds({
    http: refuse,
    runScript: refuse,
    handlers: { pluginOf: refuse, command: refuse, job: refuse, execute: refuse },
    now: refuse,
  });
}
