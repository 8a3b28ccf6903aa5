import { z } from 'zod';
import {
  approveWorkflowSecrets,
  listWorkflows,
  type SecretApproval,
  WorkflowId,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/secrets.md "In workflows" */
export const approveSecrets = defineCommand({
  name: 'workflows approve-secrets',
  summary: 'Allow a workflow to use the secrets that its definition names',
  example: 'svc workflows approve-secrets nightly --yes',
  args: z.object({ workflow: WorkflowId.describe('workflow id') }),
  async run({ workflow: id }, context) {
    const { client, ui } = context;
    const { items } = await client.call(listWorkflows);
    const workflow = items.find((item) => item.id === id);
    if (!workflow?.secrets)
      throw new PlatformError(
        workflow ? 'VALIDATION_ERROR' : 'WORKFLOW_NOT_FOUND',
        workflow
          ? `The definition of ${id} names no secrets.`
          : `There is no workflow "${id}"; \`svc workflows list\` shows the registered workflows.`,
      );
    const { hash, source, secrets } = workflow;
    ui.note(`${source} may send these secrets anywhere: ${secrets.names.join(', ')}. Its hash is ${hash}.`);
    if (!(await confirm(context, `Approve this definition of ${id}?`))) throw new CancelledError();
    const input = { params: { workflowId: id }, body: { hash } };
    return ok(await client.call(approveWorkflowSecrets, input));
  },
  text: ({ names }: SecretApproval, style) =>
    `${style.green('✓')} Approved for ${names.join(', ')}. A changed definition needs a new approval.`,
});
