import type { ManifestV3 } from '../../../../contracts/index.ts';
import { nearest } from '../../../../kit/data/nearest.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { reportedPath } from './definition-faults.ts';
import { endHandlersOf } from './end-handler-paths.ts';

/** Returns why a plugin may not send messages of the type, or undefined if it may. @spec docs/emit.md */
export function emitProblemOf(
  { id, events, permissions }: Pick<ManifestV3, 'id' | 'events' | 'permissions'>,
  type: string,
): string | undefined {
  if (!permissions.platform?.emit) return `needs permissions.platform.emit in the manifest of ${id}`;
  if (Object.hasOwn(events, type)) return undefined;
  const near = nearest(type, Object.keys(events));
  return `"${type}" is not declared under "events" of the manifest of ${id}${near ? `; did you mean "${near}"?` : ''}`;
}

/** Returns the faults of the messages that a workflow sends when a run has ended. */
export function emitFaults(
  { definition: { on } }: Pick<CompiledWorkflow, 'definition'>,
  written: unknown,
  problemOf: ((type: string) => string | undefined) | undefined,
): Array<{ path: string; message: string }> {
  if (!problemOf) return [];
  return endHandlersOf(on).flatMap(({ handler: { message }, path }) => {
    const problem = message && problemOf(message.type);
    if (problem === undefined) return [];
    return [{ path: reportedPath([...path, 'message', 'type'], written), message: problem }];
  });
}
