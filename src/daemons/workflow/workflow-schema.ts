import { z } from 'zod';
import { WorkflowDefinition } from '../../contracts/index.ts';

/** Returns the JSON schema of workflow files for editors, which is stored as `schemas/workflow.schema.json`. */
export function workflowSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(WorkflowDefinition, { io: 'input', unrepresentable: 'any' });
  return {
    $schema,
    title: 'Workflow',
    description: 'Definition of a workflow of the svc platform, as YAML or JSON',
    ...schema,
  };
}
