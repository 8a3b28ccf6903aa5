import { commandTemplate } from './command.ts';
import { restTemplate } from './rest.ts';
import { type Template, text } from './template.ts';
import { webhookTemplate } from './webhook.ts';
import { workflowTemplate } from './workflow.ts';

export const TEMPLATES = {
  rest: restTemplate,
  webhook: webhookTemplate,
  workflow: workflowTemplate,
  command: commandTemplate,
} as const satisfies Record<string, Template>;
export type TemplateName = keyof typeof TEMPLATES;

/** Every file of a new plugin, by its path in the folder. */
export function filesOf(template: TemplateName, id: string, platformVersion: string): Record<string, string> {
  const { manifest, files, readme } = TEMPLATES[template](id);
  const range = `^${platformVersion}`;
  return {
    'package.json': json({
      name: id,
      version: '0.1.0',
      private: true,
      type: 'module',
      scripts: { test: 'node --test', validate: 'svc plugins validate' },
      devDependencies: { 'svc-platform': range },
    }),
    'svc.plugin.json': json({
      $schema: './node_modules/svc-platform/config/plugin.schema.json',
      schema: 'svc.plugin/3',
      id,
      version: '0.1.0',
      engines: { svc: range },
      ...manifest,
    }),
    '.gitignore': 'node_modules/\n',
    'README.md': text(`
      # ${id}

      ${readme}

          npm test                 # runs the handlers in the sandbox, as the platform does
          svc plugins validate     # checks the manifest and everything it names
          svc plugins dev          # links this folder and reloads it at each change
    `),
    ...files,
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
