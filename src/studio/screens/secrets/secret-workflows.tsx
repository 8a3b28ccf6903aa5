import { call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Status } from '../../ui/status.tsx';
import type { Action } from '../../ui/use-action.ts';
import type { SecretWorkflow } from './readers.ts';

interface SecretWorkflowsProps {
  workflows: readonly SecretWorkflow[];
  action: Action;
  canApprove: boolean;
}

/** Workflows that name secrets. Each text of a definition needs the approval of an administrator. */
export function SecretWorkflows({ workflows, action, canApprove }: SecretWorkflowsProps) {
  if (workflows.length === 0) return null;
  return (
    <Section title="Workflows with secrets">
      <p>Steps get secrets only while the present text of the definition is approved.</p>
      <DataTable
        label="Workflows with secrets"
        columns={columns(action, canApprove)}
        items={workflows}
        keyOf={({ id }) => id}
      />
    </Section>
  );
}

const columns = (action: Action, canApprove: boolean): ReadonlyArray<Column<SecretWorkflow>> => [
  { name: 'Workflow', value: ({ id }) => id },
  { name: 'Source', value: ({ source }) => source },
  { name: 'Secrets', value: ({ secrets }) => secrets.names.join(', ') },
  { name: 'State', value: ({ secrets }) => <Status value={secrets.approved ? 'active' : 'not approved'} /> },
  { name: 'Approved by', value: ({ secrets }) => (secrets.approved ? secrets.approvedBy : '–') },
  { name: 'Hash', value: ({ hash }) => <code>{hash.slice(0, 12)}</code> },
  ...(canApprove
    ? [
        {
          name: 'Actions',
          value: ({ id, source, hash, secrets }: SecretWorkflow) => (
            <ConfirmButton
              label="Approve"
              question={`Approve ${id} as it is in ${source}? Its steps can then send ${secrets.names.join(', ')} to their targets. Read the definition first.`}
              isDisabled={secrets.approved || action.isBusy}
              onConfirmed={() =>
                action.run(async () => {
                  await call('approveWorkflowSecrets', {
                    params: { workflowId: id as never },
                    body: { hash },
                  });
                  outdate('listWorkflows');
                  return `${id} may use its secrets until its definition changes.`;
                })
              }
            />
          ),
        },
      ]
    : []),
];
