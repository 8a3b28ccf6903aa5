import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/command-table/command-table.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { systemRandom } from '../src/kit/security/random.ts';
import { createDescriber, validatePlugin } from '../src/plugins/index.ts';
import { writeFiles } from './daemons/marketplace/support.ts';
import { startBackend } from './plugins/support.ts';
import { tempDir } from './support/daemon.ts';
import { runPluginTests } from './support/plugin-tests.ts';

interface Block {
  file: string | undefined;
  language: string;
  code: string;
}

/** The code blocks of docs/plugins.md, with the file each is said to be. */
async function blocks(): Promise<Block[]> {
  const text = await readFile(join(packageRoot, 'docs/plugins.md'), 'utf8');
  return [...text.matchAll(/(?:<!-- file: (\S+) -->\n\n)?```(\w+)\n([\s\S]*?)```/g)].map(
    ([, file, language, code]) => ({ file, language: language!, code: code! }),
  );
}

test('every piece of code in the guide is a file of its plugin', async () => {
  for (const { file, language, code } of await blocks())
    expect(language === 'sh' || file !== undefined, code).toBe(true);
});

test('the plugin of the guide is valid, and its tests pass', async () => {
  const files = (await blocks()).flatMap(({ file, code }) => (file === undefined ? [] : [[file, code]]));
  const folder = await writeFiles(await tempDir(), Object.fromEntries(files));
  const { backend } = await startBackend();
  const { faults } = await validatePlugin(folder, createDescriber(backend, systemRandom()));
  expect(faults).toEqual([]);

  await mkdir(join(folder, 'node_modules'));
  await symlink(packageRoot, join(folder, 'node_modules/svc-platform'));
  const { code, stdout } = await runPluginTests(folder);
  expect(code, stdout).toBe(0);
  expect(stdout).toMatch(/# pass 6/);
});

test('each svc command in the guide exists', async () => {
  const lines = (await blocks())
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => code.split('\n'));
  const typed = lines.filter((line) => line.startsWith('svc '));
  expect(typed.length).toBeGreaterThan(10);
  for (const line of typed) {
    const words = line.split(' ').slice(1);
    expect(
      COMMANDS.some(({ name }) => words.join(' ').startsWith(name)),
      line,
    ).toBe(true);
  }
});
