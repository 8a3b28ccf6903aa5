import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunRecord, RunStore, StartOptions } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import { partsOf, type RunParts, stepIdOf, stepsOf } from '../run/parts.ts';
import { viewChild } from '../run/views.ts';

export interface ChildApprovalsDeps {
  store: Pick<RunStore, 'find' | 'load' | 'children'>;
  definitions: Pick<Definitions, 'byHash'>;
}

/** Child runs of one run that are examined at most. */
const MAX_CHILDREN = 10_000;

/**
 * Keeps a rerun with another input from reusing steps whose child runs contain an approval, which was decided for the
 * earlier input.
 */
export class ChildApprovals {
  readonly #deps: ChildApprovalsDeps;

  constructor(deps: ChildApprovalsDeps) {
    this.#deps = deps;
  }

  /** Throws VALIDATION_ERROR if a reused step has a child run with an approval, at any depth, or one that is deleted. */
  async refuse(run: RunRecord, groups: RunParts, reused: NonNullable<StartOptions['parts']>): Promise<void> {
    const kept = new Set(reused.steps.map(({ jobKey, index }) => `${jobKey} ${index}`));
    const steps = stepsOf(groups).filter(
      ({ record, step }) =>
        step.uses === 'workflow' && record.attempts > 0 && kept.has(`${record.jobKey} ${record.index}`),
    );
    if (steps.length === 0) return;
    const children = await this.#childrenOf(run);
    for (const step of steps) {
      const id = stepIdOf(step);
      const own = children.filter(({ stepId }) => stepId === id);
      const isUnknown = own.length === 0;
      const found = isUnknown || (await this.#anyHasApproval(run.tenantId, own));
      if (!found) continue;
      const why = isUnknown
        ? 'its child run was deleted, and could have contained an approval'
        : 'its child run contains an approval, which was decided or skipped for the earlier input';
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The result of "${id}" cannot be reused with another input: ${why}. Run again from "${id}" or an earlier step.`,
      );
    }
  }

  async #childrenOf({ id }: RunRecord) {
    return (await this.#deps.store.children(id, MAX_CHILDREN)).map(viewChild);
  }

  async #anyHasApproval(tenantId: string, children: ReadonlyArray<{ id: string }>): Promise<boolean> {
    for (const { id } of children) if (await this.#hasApproval(tenantId, id)) return true;
    return false;
  }

  async #hasApproval(tenantId: string, id: string): Promise<boolean> {
    const { store, definitions } = this.#deps;
    const run = await store.find(tenantId, id);
    const loaded = run && (await store.load(run.seq));
    if (!loaded) return true;
    const groups = partsOf(await definitions.byHash(run.definitionHash), loaded);
    if (stepsOf(groups).some(({ step }) => step.uses === 'approval')) return true;
    return this.#anyHasApproval(tenantId, await this.#childrenOf(run));
  }
}
