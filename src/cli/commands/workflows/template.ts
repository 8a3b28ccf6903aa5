import { schemaPath } from '../../vendor/project-schemas.ts';
import { text } from '../plugins/templates/template.ts';

/** A new workflow in YAML. The schema comment enables completion in editors. */
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
