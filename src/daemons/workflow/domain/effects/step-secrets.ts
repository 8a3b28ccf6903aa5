import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunRecord, SecretApprovalStore } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { type SecretPlace, withSecrets } from '../definition/secret-places.ts';

/** Reads secrets of a tenant by name, without those that do not exist. */
export type ReadSecrets = (
  run: RunRecord,
  names: readonly string[],
  signal: AbortSignal,
) => Promise<ReadonlyMap<string, string>>;

export interface StepSecretsDeps {
  approvals: SecretApprovalStore;
  read: ReadSecrets;
}

/** Fills secrets into the input of a step when its work starts. The values reach neither records nor expressions. */
export class StepSecrets {
  readonly #deps: StepSecretsDeps;

  constructor(deps: StepSecretsDeps) {
    this.#deps = deps;
  }

  /**
   * Throws PERMISSION_DENIED if no administrator of the tenant has approved the definition with which the run was
   * started, and NOT_FOUND if the tenant has no such secret.
   */
  async fill(
    { run, workflow, signal }: { run: RunRecord; workflow: CompiledWorkflow; signal: AbortSignal },
    input: Record<string, JsonValue>,
    secrets: readonly SecretPlace[],
  ): Promise<Record<string, JsonValue>> {
    if (secrets.length === 0) return input;
    const { tenantId, workflowId } = run;
    const approval = await this.#deps.approvals.find({ tenantId, workflowId, hash: workflow.hash });
    if (!approval) throw unapproved(workflowId, tenantId);
    const names = [...new Set(secrets.map(({ name }) => name))];
    const values = await this.#deps.read(run, names, signal);
    const missing = names.find((name) => !values.has(name));
    if (missing !== undefined) throw missingSecret(missing, tenantId);
    return withSecrets(input, secrets, values);
  }
}

function unapproved(workflowId: string, tenantId: string): PlatformError {
  return new PlatformError(
    'PERMISSION_DENIED',
    `No administrator of the namespace ${tenantId} has approved that this definition of ${workflowId} uses secrets.`,
    { details: { workflowId, hint: `svc workflows approve-secrets ${workflowId} --namespace ${tenantId}` } },
  );
}

function missingSecret(name: string, tenantId: string): PlatformError {
  return new PlatformError('NOT_FOUND', `The namespace ${tenantId} has no secret ${name}.`, {
    details: { secret: name, hint: `svc secrets set ${name} --tenant ${tenantId}` },
  });
}
