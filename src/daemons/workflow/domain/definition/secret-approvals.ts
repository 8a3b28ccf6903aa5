import type { SecretApproval } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { SecretApprovalStore } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Definitions } from './definitions.ts';

/** Approvals of a workflow that are kept. Runs of a former text can still be in progress. */
const KEPT = 20;

export interface SecretApprovalsDeps {
  store: SecretApprovalStore;
  definitions: Pick<Definitions, 'require'>;
  clock: Clock;
}

/** Approvals by administrators that a registered definition uses the secrets of their namespace. */
export class SecretApprovals {
  readonly #deps: SecretApprovalsDeps;

  constructor(deps: SecretApprovalsDeps) {
    this.#deps = deps;
  }

  /**
   * Approves the present text of a definition. Throws CONFLICT if it is not the text that was reviewed, and
   * VALIDATION_ERROR if it names no secrets.
   */
  async approve(tenantId: string, workflowId: string, { hash, by }: { hash: string; by: string }) {
    const { store, definitions, clock } = this.#deps;
    const workflow = definitions.require(workflowId);
    if (workflow.hash !== hash)
      throw new PlatformError('CONFLICT', `The definition of ${workflowId} has changed meanwhile.`, {
        details: { hash: workflow.hash, hint: 'Review it again with svc workflows list.' },
      });
    if (secretsOf(workflow).length === 0)
      throw new PlatformError('VALIDATION_ERROR', `The definition of ${workflowId} names no secrets.`);
    await store.approve({ tenantId, workflowId, hash, approvedBy: by, approvedAt: clock.now() }, KEPT);
    return (await this.stateOf(tenantId, workflow))!;
  }

  /** Returns the secrets of a definition with their approval. Undefined for a definition without secrets. */
  async stateOf(tenantId: string, workflow: CompiledWorkflow): Promise<SecretApproval | undefined> {
    const names = secretsOf(workflow);
    if (names.length === 0) return undefined;
    const key = { tenantId, workflowId: workflow.definition.id, hash: workflow.hash };
    const approval = await this.#deps.store.find(key);
    return {
      names: [...names],
      approved: approval !== undefined,
      approvedBy: approval?.approvedBy ?? null,
      approvedAt: approval?.approvedAt ?? null,
    };
  }
}

export function secretsOf({ definition }: CompiledWorkflow): readonly string[] {
  return definition.permissions?.secrets ?? [];
}

/**
 * Throws VALIDATION_ERROR for a definition that was sent with a run and names secrets: otherwise everyone who may start
 * a run could send a secret elsewhere.
 */
export function requireNoSecrets(workflow: CompiledWorkflow): void {
  const names = secretsOf(workflow);
  if (names.length === 0) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `A definition that is sent with a run cannot use secrets (permissions.secrets names ${names.join(', ')}).`,
    {
      details: {
        hint: 'Register the definition as a file or in a plugin, and let an administrator approve it.',
      },
    },
  );
}
