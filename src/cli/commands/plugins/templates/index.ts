import { commandTemplate } from './command.ts';
import { restTemplate } from './rest.ts';
import { type Template, type TemplateParts, text } from './template.ts';
import { webhookTemplate } from './webhook.ts';
import { workflowTemplate } from './workflow.ts';

export const TEMPLATES = {
  rest: restTemplate,
  webhook: webhookTemplate,
  workflow: workflowTemplate,
  command: commandTemplate,
} as const satisfies Record<string, Template>;
export type TemplateName = keyof typeof TEMPLATES;

/** The version of svc for which a plugin is created. */
export interface TargetPlatform {
  version: string;
  /** Entry for the `devDependencies` of the plugin. */
  dependency: Record<string, string>;
}

/** Returns all files of a new plugin, by path. */
export function filesOf(
  { manifest, files, readme }: TemplateParts,
  id: string,
  platform: TargetPlatform,
): Record<string, string> {
  return {
    'package.json': json({
      name: id,
      version: '0.1.0',
      private: true,
      type: 'module',
      scripts: { test: 'svc plugins test', validate: 'svc plugins validate' },
      devDependencies: platform.dependency,
    }),
    'svc.plugin.json': json({
      $schema: './node_modules/svc-platform/schemas/plugin.schema.json',
      schema: 'svc.plugin/3',
      id,
      version: '0.1.0',
      engines: { svc: `^${platform.version}` },
      ...manifest,
    }),
    '.gitignore': 'node_modules/\n',
    'README.md': text(`
      # ${id}

      ${readme}

          npm install              # in a fresh clone; needs no registry
          npm test                 # runs the handlers in the sandbox, like the platform
          npm run validate         # checks the manifest and all references

      The tests need Node 22.19 or newer; \`npm test\` reports an older one. If \`npm install\` reports that
      \`svc-platform-….tgz\` is missing, run \`svc plugins repair\`.
    `),
    ...files,
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
