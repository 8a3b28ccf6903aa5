import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempDir } from '../../support/daemon.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples/plugins');

/** Copies an example into a new project, with other values in `permissions`. Returns the folder of the project. */
export async function copyExample(name: string, permissions: object = {}): Promise<string> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins', name);
  await cp(join(EXAMPLES, name), folder, { recursive: true });
  const file = join(folder, 'svc.plugin.json');
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  manifest.permissions = { ...manifest.permissions, ...permissions };
  await writeFile(file, JSON.stringify(manifest));
  return projectDir;
}
