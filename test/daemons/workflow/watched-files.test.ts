import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listWorkflows } from '../../../src/contracts/index.ts';
import { workflowSchema } from '../../../src/daemons/workflow/workflow-schema.ts';
import { asSchemaFile } from '../../../src/kit/config/config-file.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { runSvc } from '../../cli/svc.ts';
import { tempDir } from '../../support/daemon.ts';
import { startWorkflow } from './support/workflow.ts';

const text = (id: string, version: string) =>
  [`id: ${id}`, `version: "${version}"`, 'jobs:', '  main:', '    steps:', '      - uses: set', ''].join(
    '\n',
  );

test('workflow files, .yaml and .yml, reload by themselves; a broken edit leaves the version before', async () => {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'workflows');
  await mkdir(folder);
  const workflow = await startWorkflow({ projectDir, dataDir: join(projectDir, '.svc') });
  const listed = async () => {
    const { items, faults } = await workflow.call(listWorkflows);
    return { versions: items.map(({ id, version }) => `${id} ${version}`), faulty: faults.length > 0 };
  };
  const becomes = (versions: string[], faulty = false) =>
    expect.poll(listed, { timeout: 20_000 }).toEqual({ versions, faulty });
  await becomes([]);
  await writeFile(join(folder, 'a.yaml'), text('a', '1'));
  await becomes(['a 1']);
  await writeFile(join(folder, 'b.yml'), text('b', '1'));
  await becomes(['a 1', 'b 1']);
  await writeFile(join(folder, 'b.yml'), text('b', '2'));
  await becomes(['a 1', 'b 2']);
  for (const broken of [text('b', '3').replace('set', 'nothing-such'), 'id: [']) {
    await writeFile(join(folder, 'b.yml'), broken);
    await becomes(['a 1', 'b 2'], true);
  }
  await writeFile(join(folder, 'b.yml'), text('b', '4'));
  await becomes(['a 1', 'b 4']);
  await rm(join(folder, 'a.yaml'));
  await becomes(['b 4']);
});

test('a workflow that is renamed is gone under its former ids, also while its plugin is absent', async () => {
  const { services } = await startWorkflow();
  const { definitions } = services;
  const register = (id: string, uses = 'absent/command') => {
    const definition = {
      id,
      on: { schedule: [{ cron: '0 * * * *' }] },
      jobs: { main: { steps: [{ uses }] } },
    };
    definitions.register([
      { source: 'a.yaml', definition: { ...definition, id: 'other' } },
      { source: 'b.yaml', definition },
    ]);
    return [...definitions.registered.keys()].toSorted();
  };
  for (const id of ['old', 'new', 'newer']) expect(register(id)).toEqual([id, 'other'].toSorted());
  expect(definitions.faults).toMatchObject([{ unresolved: true }, { unresolved: true }]);
  // Of broken edits, however many, the last one that was whole stays.
  expect(register('broken', 'nothing-such')).toEqual(['newer', 'other']);
  expect(register('broken-again', 'nothing-such')).toEqual(['newer', 'other']);
  // An id that another file has is a fault too.
  expect(register('other')).toEqual(['newer', 'other']);
  expect(register('newest')).toEqual(['newest', 'other']);
});

test('a file is validated with every fault and its line, without a platform that runs', async () => {
  const cwd = await tempDir();
  await writeFile(join(cwd, 'good.yml'), text('good', '1'));
  expect(await runSvc(cwd, ['workflows', 'validate', 'good.yml', '--json'])).toMatchObject({
    code: 0,
    json: { ok: true, result: { id: 'good', version: '1', jobs: ['main'] } },
  });
  await writeFile(join(cwd, 'bad.yaml'), `${text('bad', '1').replace('set', 'htp')}    stepz: 1\n`);
  const { code, stderr } = await runSvc(cwd, ['workflows', 'validate', 'bad.yaml']);
  expect(code).not.toBe(0);
  expect(stderr).toContain('bad.yaml has 2 problems');
  expect(stderr).toMatch(/bad\.yaml:6:\d+ .*htp/);
  expect(stderr).toMatch(/bad\.yaml:7:\d+ .*stepz/);
  const absent = await runSvc(cwd, ['workflows', 'validate', 'absent.yaml', '--json']);
  expect(absent.json.error.message).toContain('does not exist');
});

test('schemas/workflow.schema.json is that of the contract', async () => {
  expect(await readFile(join(packageRoot, 'schemas/workflow.schema.json'), 'utf8')).toBe(
    asSchemaFile(workflowSchema()),
  );
});
