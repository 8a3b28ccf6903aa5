import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../../kit/files/paths.ts';
import { writePlugin } from '../plugins/create.ts';
import { workflowText } from '../workflows/template.ts';

/** Example projects; the first is the default. */
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

/** Name of the example's plugin and folder; null for none. */
export function pluginOf(example: ExampleName): string | null {
  if (example === 'none') return null;
  return example === 'github' ? 'github' : `my-${example}`;
}

/** Workflow file of an example; null if it has none. */
export function workflowOf(example: ExampleName, folder: string): { path: string; text: string } | null {
  if (example !== 'workflow') return null;
  const path = 'workflows/hello.yaml';
  return { path, text: workflowText('hello', folder, join(folder, path)) };
}

/** Writes the example's plugin into a new `folder`, and its dependencies into `vendor`. */
export async function writeExample(
  example: Exclude<ExampleName, 'none'>,
  folder: string,
  vendor: string,
): Promise<void> {
  if (example === 'github')
    await cp(join(packageRoot, 'examples', 'plugins', 'github'), folder, { recursive: true });
  else await writePlugin(folder, example, `my-${example}`, vendor);
}
