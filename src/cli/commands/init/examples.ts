import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../../kit/files/paths.ts';
import { TEMPLATES } from '../plugins/templates/index.ts';
import { writePlugin } from '../plugins/write-plugin.ts';
import { workflowText } from '../workflows/template.ts';

/** Examples that `svc init` can create. The first example is the default. */
export const EXAMPLES = [
  {
    value: 'github',
    label: 'github',
    hint: 'receives signed webhooks from GitHub and counts issues and pushes',
  },
  { value: 'webhook', label: 'webhook', hint: 'a signed webhook that stores orders' },
  { value: 'rest', label: 'rest', hint: 'typed REST routes' },
  { value: 'workflow', label: 'workflow', hint: 'durable workflows: one in YAML, one in code' },
  { value: 'none', label: 'none', hint: 'an empty plugins folder' },
] as const;
export type ExampleName = (typeof EXAMPLES)[number]['value'];

/**
 * Returns the example's plugin id, which is also the plugin's folder name. Returns null if the example has no plugin.
 */
export function pluginOf(example: ExampleName): string | null {
  if (example === 'none') return null;
  return example === 'github' ? 'github' : `my-${example}`;
}

/** Returns the workflow file of an example, or null if the example has no workflow. */
export function workflowOf(example: ExampleName, folder: string): { path: string; text: string } | null {
  if (example !== 'workflow') return null;
  const path = 'workflows/hello.yaml';
  return { path, text: workflowText('hello', folder, join(folder, path)) };
}

/**
 * Writes the plugin of an example into a new folder. Plugins from a template also get the platform archive in `vendor`.
 */
export async function writeExample(
  example: Exclude<ExampleName, 'none'>,
  folder: string,
  vendor: string,
): Promise<void> {
  if (example === 'github')
    await cp(join(packageRoot, 'examples', 'plugins', 'github'), folder, { recursive: true });
  else {
    const id = `my-${example}`;
    await writePlugin(folder, TEMPLATES[example](id), id, vendor);
  }
}
