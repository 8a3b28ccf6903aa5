import type { EndHandler, ManifestV3 } from '../../../../contracts/index.ts';
import { nearest } from '../../../../kit/data/nearest.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { reportedPath } from './definition-faults.ts';
import { endHandlersOf } from './end-handler-paths.ts';
import type { Path } from './templates.ts';

/** Returns the source of the registered workflow with the id, or undefined if there is none. */
type SourceOf = (workflowId: string) => string | undefined;

/** Returns why a workflow may not have the handler, with the path within the handler, or undefined if it may. */
export type HandlerFaultOf = (
  handler: EndHandler,
  sourceOf: SourceOf,
) => { path: Path; message: string } | undefined;

/**
 * Returns the check of the handlers of ended runs in a plugin's workflows.
 * @spec docs/workflows.md "When a run has ended"
 */
export function pluginHandlerFault(
  manifest: Pick<ManifestV3, 'id' | 'events' | 'permissions' | 'workflows'>,
): HandlerFaultOf {
  return ({ workflow, message }, sourceOf) => {
    const problem = message
      ? emitProblem(manifest, message.type)
      : startProblem(manifest, workflow!, sourceOf(workflow!));
    if (problem === undefined) return undefined;
    return { path: message ? ['message', 'type'] : ['workflow'], message: problem };
  };
}

/** Returns the faults of the handlers that a workflow may not have. */
export function endHandlerFaults(
  { definition: { on } }: Pick<CompiledWorkflow, 'definition'>,
  written: unknown,
  faultOf: (handler: EndHandler) => ReturnType<HandlerFaultOf>,
): Array<{ path: string; message: string }> {
  return endHandlersOf(on).flatMap(({ handler, path }) => {
    const fault = faultOf(handler);
    if (!fault) return [];
    return [{ path: reportedPath([...path, ...fault.path], written), message: fault.message }];
  });
}

function emitProblem(
  { id, events, permissions }: Pick<ManifestV3, 'id' | 'events' | 'permissions'>,
  type: string,
): string | undefined {
  if (!permissions.platform?.emit) return `needs permissions.platform.emit in the manifest of ${id}`;
  if (Object.hasOwn(events, type)) return undefined;
  const near = nearest(type, Object.keys(events));
  return `"${type}" is not declared under "events" of the manifest of ${id}${near ? `; did you mean "${near}"?` : ''}`;
}

/** A workflow of the manifest belongs to another source if that source registered the id first. */
function startProblem(
  { id, permissions, workflows }: Pick<ManifestV3, 'id' | 'permissions' | 'workflows'>,
  workflowId: string,
  source: string | undefined,
): string | undefined {
  const isOwn = workflows.some((own) => own.id === workflowId) && (source ?? id) === id;
  if (isOwn || permissions.platform?.workflows) return undefined;
  return `needs permissions.platform.workflows in the manifest of ${id}, because "${workflowId}" is not a workflow of this plugin`;
}
