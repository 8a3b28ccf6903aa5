import { schemaPath } from '../../vendor/project-schemas.ts';
import { text } from '../plugins/templates/template.ts';

/**
 * Returns the text of a new workflow in YAML. The first line refers to the schema, which enables completion in editors.
 */
export function workflowText(id: string, projectDir: string, file: string): string {
  return text(`
    # yaml-language-server: $schema=${schemaPath(projectDir, 'workflow.schema.json', file)}
    id: "${id}"
    inputs:
      type: object
      properties: { name: { type: string, default: world } }
    outputs: { greeting: "\${{ jobs.main.outputs.greeting }}" }
    jobs:
      main:
        outputs: { greeting: "\${{ steps.greet.output.text }}" }
        steps:
          - id: greet
            uses: set
            with: { text: "Hello \${{ input.name }}" }
  `);
}
