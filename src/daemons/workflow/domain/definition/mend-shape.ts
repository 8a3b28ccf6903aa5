import { WorkflowDefinition } from '../../../../contracts/index.ts';
import { valueAt } from '../../../../kit/data/schema-problems.ts';
import { schemaIssues } from './definition-faults.ts';
import type { DefinitionIssue, Path } from './templates.ts';

/** A definition whose faulty values were removed or replaced, so that the remaining values can be checked. */
export interface MendedDefinition {
  definition: WorkflowDefinition;
  /** Paths at which the repaired definition differs from the original definition. */
  changed: Path[];
}

/** Maximum number of repair rounds. A round can uncover new faults, for example if a removed value was required. */
const MAX_ROUNDS = 4;
const STEP = { uses: 'set' };
const STEPS = [STEP];
/** Placeholders for missing required keys. */
const STAND_INS: Readonly<Record<string, unknown>> = {
  id: 'unnamed',
  uses: STEP.uses,
  steps: STEPS,
  jobs: { unnamed: { steps: STEPS } },
};

/** Repairs a definition that violates the schema. Returns undefined if the repair fails. */
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

/** Removes the value at a path, or inserts a placeholder for a missing value. Returns the changed paths. */
function mend(root: unknown, path: Path): Path[] {
  const key = path.at(-1);
  if (key === undefined) return [];
  const parent = valueAt(root, path.slice(0, -1));
  if (typeof parent !== 'object' || parent === null) return mend(root, path.slice(0, -1));
  // A list item is not removed, because its removal would shift the following items.
  if (Array.isArray(parent)) {
    if (path.at(-2) !== 'steps') return mend(root, path.slice(0, -1));
    parent[Number(key)] = STEP;
    return [path];
  }
  const fields = parent as Record<string, unknown>;
  if (Object.hasOwn(fields, key)) {
    delete fields[key];
    // `with` is checked against `uses`, so the path of `with` counts as changed too.
    return key === 'uses' ? [path, [...path.slice(0, -1), 'with']] : [path];
  }
  if (!Object.hasOwn(STAND_INS, key)) return mend(root, path.slice(0, -1));
  fields[key] = structuredClone(STAND_INS[key]);
  return [path, ...(key === 'uses' ? [[...path.slice(0, -1), 'with']] : [])];
}
