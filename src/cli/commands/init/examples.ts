import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../../kit/paths.ts';
import { writePlugin } from '../plugins/create.ts';
import { workflowText } from '../workflows/template.ts';

/** What a project may begin with; the first is the default. */
export const EXAMPLES = [
  { value: 'github', label: 'github', hint: "counts GitHub's issues and pushes, signed webhooks in" },
  { value: 'webhook', label: 'webhook', hint: 'a signed webhook that keeps orders' },
  { value: 'rest', label: 'rest', hint: 'typed REST routes' },
  { value: 'workflow', label: 'workflow', hint: 'durable workflows: one in YAML, one in code' },
  { value: 'none', label: 'none', hint: 'an empty plugins folder' },
] as const;
export type ExampleName = (typeof EXAMPLES)[number]['value'];

/** What the example's plugin is called, which is its folder's name as well; null for none. */
export function pluginOf(example: ExampleName): string | null {
  if (example === 'none') return null;
  return example === 'github' ? 'github' : `my-${example}`;
}

/** The workflow file of an example; null: it has none. */
export function workflowOf(example: ExampleName, folder: string): { path: string; text: string } | null {
  if (example !== 'workflow') return null;
  const path = 'workflows/hello.yaml';
  return { path, text: workflowText('hello', folder, join(folder, path)) };
}

/** Writes the example's plugin into `folder`, which does not exist yet, and what it needs to be installed into `vendor`. */
export async function writeExample(
  example: Exclude<ExampleName, 'none'>,
  folder: string,
  vendor: string,
): Promise<void> {
  if (example === 'github')
    await cp(join(packageRoot, 'examples', 'plugins', 'github'), folder, { recursive: true });
  else await writePlugin(folder, example, `my-${example}`, vendor);
}
