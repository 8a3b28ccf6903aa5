import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { Definitions } from '../../../src/daemons/workflow/domain/definition/definitions.ts';
import { hasScripts } from '../../../src/daemons/workflow/domain/definition/scripts.ts';
import { registerAll } from '../../../src/daemons/workflow/register-all.ts';
import { SandboxCheck } from '../../../src/daemons/workflow/sandbox-check.ts';
import { checkingKinds } from '../../../src/daemons/workflow/step-kinds.ts';
import { loadConfig } from '../../../src/kit/config/config.ts';
import { tempDir } from '../../support/daemon.ts';

test('starts share one check of the sandbox, and a failure is checked again', async () => {
  const check = vi.fn<() => Promise<unknown>>().mockResolvedValue(null);
  check.mockRejectedValueOnce(new Error('no bubblewrap'));
  const sandbox = new SandboxCheck(check);
  const first = await Promise.allSettled([sandbox.require(), sandbox.require()]);
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(check).toHaveBeenCalledTimes(1);
  await Promise.all([sandbox.require(), sandbox.require()]);
  await sandbox.require();
  expect(check).toHaveBeenCalledTimes(2);
});

test('a check that fails late does not replace the result of the next one', async () => {
  const first = Promise.withResolvers<void>();
  const check = vi.fn<() => Promise<unknown>>().mockReturnValueOnce(first.promise).mockResolvedValue(null);
  const sandbox = new SandboxCheck(check);
  const late = sandbox.require();
  sandbox.reset();
  await sandbox.require();
  first.reject(new Error('no bubblewrap'));
  await expect(late).rejects.toThrow('no bubblewrap');
  await sandbox.require();
  expect(check).toHaveBeenCalledTimes(2);
});

test('the search for scripts stops at the first one', () => {
  const later = vi.fn(() => ({ name: 'run' }));
  const step = {
    get kind() {
      return later();
    },
  };
  const workflow = { jobs: [{ steps: [{ kind: { name: 'run' } }, step] }] } as never;
  expect(hasScripts(workflow)).toBe(true);
  expect(later).not.toHaveBeenCalled();
});

test('the sandbox is checked again when definitions are registered again', async () => {
  const projectDir = await tempDir();
  const { config } = loadConfig({ cwd: projectDir, env: {} });
  await mkdir(join(projectDir, 'workflows'));
  const file = { id: 'file', jobs: { main: { steps: [{ run: 'true' }] } } };
  await writeFile(join(projectDir, 'workflows/file.yaml'), JSON.stringify(file));
  const definitions = new Definitions({ kindOf: checkingKinds(), find: async () => undefined });
  const check = vi.fn<() => Promise<unknown>>().mockResolvedValue(null);
  const sandboxCheck = new SandboxCheck(check);
  const register = () =>
    registerAll(
      { config, projectDir } as never,
      { registry: { plugins: [] } } as never,
      { definitions, sandboxCheck },
      { diagnostic() {} } as never,
    );
  await register();
  await sandboxCheck.require();
  expect(check).toHaveBeenCalledTimes(1);

  check.mockRejectedValue(new Error('no bubblewrap any more'));
  await register();
  expect(definitions.faults).toMatchObject([{ message: 'no bubblewrap any more', unresolved: true }]);
});
