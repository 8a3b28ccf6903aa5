import type { EndHandler, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { Path } from './templates.ts';

const KINDS = ['failure', 'success'] as const;

export interface DefinedEndHandler {
  kind: (typeof KINDS)[number];
  handler: EndHandler;
  /** Path in the parsed definition. `reportedPath` omits the index of a handler that is written without a list. */
  path: Path;
}

/** Returns the handlers of `on.failure` and `on.success` of a parsed definition. */
export function endHandlersOf(on: WorkflowDefinition['on']): DefinedEndHandler[] {
  return KINDS.flatMap((kind) =>
    (on[kind] ?? []).map((handler, index) => ({ kind, handler, path: ['on', kind, index] })),
  );
}
