import { WorkflowDefinition } from '../../../../contracts/index.ts';
import { valueAt } from '../../../../kit/schema-problems.ts';
import { schemaIssues } from './definition-faults.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** A definition whose faulty parts were taken out or replaced, so that the rest of it can be checked. */
export interface MendedDefinition {
  definition: WorkflowDefinition;
  /** Where it differs from what was written. */
  changed: Path[];
}

/** Each round mends what the one before uncovered: a wrong value first, then that it is missing. */
const MAX_ROUNDS = 4;
const STEP = { uses: 'set' };
const STEPS = [STEP];
/** What stands in for required keys. */
const STAND_INS: Readonly<Record<string, unknown>> = {
  id: 'unnamed',
  uses: STEP.uses,
  steps: STEPS,
  jobs: { unnamed: { steps: STEPS } },
};

/** Undefined for a definition that is beyond mending. */
export function mendShape(
  written: unknown,
  issues: readonly DefinitionIssue[],
): MendedDefinition | undefined {
  const mended = structuredClone(written);
  const changed: Path[] = [];
  let open = issues;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    for (const { path } of open) changed.push(...mend(mended, path));
    const parsed = WorkflowDefinition.safeParse(mended);
    if (parsed.success) return { definition: parsed.data, changed };
    open = schemaIssues(parsed.error, mended, WorkflowDefinition);
  }
  return undefined;
}

/** Takes out the value at a path, or puts one where it is missing. Returns what was changed. */
function mend(root: unknown, path: Path): Path[] {
  const key = path.at(-1);
  if (key === undefined) return [];
  const parent = valueAt(root, path.slice(0, -1));
  if (typeof parent !== 'object' || parent === null) return mend(root, path.slice(0, -1));
  // Taking an item out would move those behind it.
  if (Array.isArray(parent)) {
    if (path.at(-2) !== 'steps') return mend(root, path.slice(0, -1));
    parent[Number(key)] = STEP;
    return [path];
  }
  const fields = parent as Record<string, unknown>;
  if (Object.hasOwn(fields, key)) {
    delete fields[key];
    // The rest of a step is checked against what it uses.
    return key === 'uses' ? [path, [...path.slice(0, -1), 'with']] : [path];
  }
  if (!Object.hasOwn(STAND_INS, key)) return mend(root, path.slice(0, -1));
  fields[key] = structuredClone(STAND_INS[key]);
  return [path, ...(key === 'uses' ? [[...path.slice(0, -1), 'with']] : [])];
}
