import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listWorkflows, rerunRun, startRun } from '../../../src/contracts/index.ts';
import { compileCode } from '../../../src/daemons/workflow/domain/definition/compile-code.ts';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import { Definitions } from '../../../src/daemons/workflow/domain/definition/definitions.ts';
import { checkingKinds } from '../../../src/daemons/workflow/step-kinds.ts';
import { createClient } from '../../../src/http/index.ts';
import { runCli } from '../../support/cli.ts';
import { tempDir } from '../../support/daemon.ts';
import { headersOf, projectWith, startScript } from './support/scripts.ts';
import { cel, startWorkflow } from './support/workflow.ts';

const FILE = { id: 'file', jobs: { main: { steps: [{ run: 'true' }] } } };

describe('a definition with scripts', () => {
  test.each<[object, string, string]>([
    [{ run: `echo ${cel('input.title')}` }, 'run', 'Pass it by env'],
    [{ uses: 'run', with: { script: cel('input.x') } }, 'with.script', 'Pass it by env'],
    [{ run: 'true', env: { SVC_OUTPUT: 'x' } }, 'env.SVC_OUTPUT', 'must be a name'],
    [{ run: 'true', env: { A: [1] } }, 'env.A', ''],
    [{ run: 'true', shell: 'zsh' }, 'shell', 'must be one of bash, sh, python, node'],
    [{ run: 'true', uses: 'set' }, 'run', 'remove uses and with'],
    [{ run: 'true', sleep: '1s' }, 'sleep', 'a step of its own'],
    [{ uses: 'set', env: { A: 'b' } }, 'env', 'belongs to steps with run: only'],
    [{ uses: 'set', network: true }, 'network', 'belongs to steps with run: only'],
    [{ run: 'true', env: { A: cel('steps.later.output') } }, 'env.A', '"steps.later" is not there'],
  ])('is refused: %j', async (step, path, message) => {
    const it = await startWorkflow();
    await expect(startScript(it, [step])).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: {
        issues: [{ path: `jobs.main.steps[0].${path}`, message: expect.stringContaining(message) }],
      },
    });
  });

  test('is started by administrators of the platform alone, unless it is registered, and so is its rerun', async () => {
    const it = await projectWith({ file: FILE });
    const steps = [{ run: 'true' }];
    for (const as of [
      { isAdministrator: false },
      { isAdministrator: false, role: 'editor' },
      { isAdministrator: false, role: null },
      { isAdministrator: false, role: 'absent' },
      { isAdministrator: false, hostId: 'operator' },
      { via: 'agent' },
      { via: 'elicitation' },
    ] as const)
      await expect(startScript(it, steps, as)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const id = await startScript(it, steps);
    await it.until(id, 'succeeded');

    const client = createClient({ url: it.url, peer: 'workflow' });
    const rerun = (runId: string, isAdministrator: boolean) =>
      client.call(rerunRun, { params: { runId }, body: {} } as never, {
        headers: headersOf({ isAdministrator }),
      });
    await expect(rerun(id, false)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await it.until((await rerun(id, true)).run.id, 'succeeded');

    const { run } = await client.call(startRun, { body: { workflowId: 'file' } } as never, {
      headers: headersOf({ role: 'editor', isAdministrator: false }),
    });
    await it.until(run.id, 'succeeded');
    await it.until((await rerun(run.id, false)).run.id, 'succeeded');
  });

  test('of an edited or removed workflow file is run again by administrators alone', async () => {
    const it = await projectWith({ file: FILE });
    const file = join(it.dataDir, '../workflows/file.yaml');
    const client = createClient({ url: it.url, peer: 'workflow' });
    const { run } = await it.call(startRun, { body: { workflowId: 'file' } } as never);
    await it.until(run.id, 'succeeded');
    const rerun = (isAdministrator: boolean) =>
      client.call(rerunRun, { params: { runId: run.id }, body: {} } as never, {
        headers: headersOf({ role: 'editor', isAdministrator }),
      });
    const registered = async () => (await it.call(listWorkflows, {})).items.map(({ version }) => version);

    await writeFile(file, JSON.stringify({ ...FILE, version: '2' }));
    await expect.poll(registered, { timeout: 20_000 }).toEqual(['2']);
    await expect(rerun(false)).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: `The workflow "file" has another definition now than run ${run.id}, whose scripts (run:) only administrators of the platform may run again. Start the workflow again, or let an administrator rerun the run.`,
    });
    await it.until((await rerun(true)).run.id, 'succeeded');

    await rm(file);
    await expect.poll(registered, { timeout: 20_000 }).toEqual([]);
    await expect(rerun(false)).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringContaining('Put the definition into a workflow file'),
    });
    await it.until((await rerun(true)).run.id, 'succeeded');
  });

  test('is reported and not started where bubblewrap is not in use', async () => {
    const it = await projectWith({ file: FILE }, { execution: { worker: { sandbox: 'permission' } } });
    const { faults } = await it.call(listWorkflows, {});
    expect(faults).toMatchObject([
      {
        path: 'jobs.main.steps[0].run',
        unresolved: true,
        message: expect.stringContaining('run only inside bubblewrap'),
      },
    ]);
    await expect(it.call(startRun, { body: { workflowId: 'file' } } as never)).rejects.toMatchObject({
      code: 'SANDBOX_ERROR',
    });
  });

  test('is refused in the manifest of a plugin, and so is a script that its code asks for', () => {
    const kindOf = checkingKinds();
    const definitions = new Definitions({ kindOf, find: async () => undefined });
    definitions.register([{ source: 'demo', pluginId: 'demo', definition: FILE }]);
    expect(definitions.registered.size).toBe(0);
    expect(definitions.faults).toMatchObject([
      { path: 'jobs.main.steps[0].run', message: expect.stringContaining('is refused in plugins') },
    ]);
    const { code } = compileCode({ id: 'code', handler: 'flows.js#code' }, 'demo', kindOf);
    const found = { id: 'x', uses: 'run', with: { script: 'true' }, options: {} };
    expect(() => code!.stepOf(found as never, 0)).toThrow(
      'The step "x" runs a script, which is refused in plugins: put the code into a command of the plugin, or the workflow into a file of the project.',
    );
    expect(() => code!.stepOf({ ...found, uses: 'nothing' } as never, 0)).toThrow(
      'Nothing runs the step "x", which uses "nothing".',
    );
  });

  test('takes secrets as whole variables alone', () => {
    const compile = (env: object) =>
      compileDefinition(
        { ...FILE, permissions: { secrets: ['A'] }, jobs: { main: { steps: [{ run: 'true', env }] } } },
        checkingKinds(),
      );
    const [step] = compile({ TOKEN: cel('secrets.A') }).jobs[0]!.steps;
    expect(step!.secrets).toEqual([{ name: 'A', path: ['env', 'TOKEN'] }]);
    expect(() => compile({ TOKEN: `Bearer ${cel('secrets.A')}` })).toThrow('jobs.main.steps[0].env.TOKEN');
  });

  test('is checked by the command line, with the sandbox of the project', async () => {
    const cwd = await tempDir();
    await mkdir(join(cwd, 'workflows'));
    await writeFile(join(cwd, 'svc.config.json'), '{}');
    const text = 'id: file\njobs:\n  main:\n    steps:\n      - run: "true"\n';
    await writeFile(join(cwd, 'workflows/file.yaml'), text);
    const validate = () => runCli(['workflows', 'validate', 'workflows/file.yaml', '--json'], { cwd });
    expect((await validate()).code).toBe(0);
    const faultWith = async (sandbox: string): Promise<string> => {
      const config = { execution: { worker: { sandbox } } };
      await writeFile(join(cwd, 'svc.config.json'), JSON.stringify(config));
      const { code, stdout } = await validate();
      expect(code).toBe(1);
      return JSON.stringify(JSON.parse(stdout).error);
    };
    expect(await faultWith('permission')).toContain('run only inside bubblewrap');
    // A fault of the config is none of the workflow.
    expect(await faultWith('unknown')).not.toContain('jobs.main');
  });
});
