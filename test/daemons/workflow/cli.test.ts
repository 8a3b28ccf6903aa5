import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entryFile } from '../../../src/kit/files/paths.ts';
import { tempDir } from '../../support/daemon.ts';
import { cel, startWorkflow } from './support/workflow.ts';

/** The workflow service, and `svc` that calls it where it would call the gateway. */
async function setUp() {
  const projectDir = await tempDir();
  await mkdir(join(projectDir, 'workflows'));
  await writeFile(
    join(projectDir, 'workflows/ship.yaml'),
    `id: ship\non: {schedule: [{id: dawn, cron: "0 3 * * *"}]}\noutputs: {v: "${cel('jobs.main.outputs.v')}"}\njobs:\n  main:\n    outputs: {v: "${cel('steps.set.output.v')}"}\n    steps:\n      - {id: gate, if: input.gate == true, uses: approval}\n      - {id: set, uses: set, with: {v: "${cel('input.n * 2')}"}}\n`,
  );
  const it = await startWorkflow({ projectDir });
  const svc = (...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [entryFile('cli'), ...args, '--url', it.url, '--token', 'any'],
        { cwd: projectDir, env: { PATH: process.env.PATH } },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  const result = async (...args: string[]) => {
    const { stdout } = await svc(...args, '--json');
    const envelope = JSON.parse(stdout);
    return envelope.ok ? envelope.result : envelope.error;
  };
  return { it, svc, result, projectDir };
}

test('workflows: list, run, follow, show, runs, logs', async () => {
  const { svc, result, projectDir } = await setUp();
  expect((await result('workflows', 'list')).items).toMatchObject([{ id: 'ship', jobs: ['main'] }]);
  const followed = await svc('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": false}', '--follow');
  expect(followed.code).toBe(0);
  expect(followed.stdout).toMatch(
    /main\.gate skipped[\s\S]*main\.set succeeded[\s\S]*run succeeded[\s\S]*\{"v":8\}/,
  );
  const bad = await svc('workflows', 'run', 'ship', '--input', '{"gate": false}', '-f');
  expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('main.set failed VALIDATION_ERROR')]);
  const [failed] = (await result('workflows', 'runs', '--status', 'failed')).items;
  const shown = await svc('workflows', 'show', failed.id);
  expect(shown.stdout).toMatch(/status\s+failed[\s\S]*main\.set\s+set\s+failed/);
  const logs = await svc('workflows', 'logs', failed.id, '-f');
  expect(logs.stdout).toContain('main.set: jobs.main.steps[1].with.v');
  await writeFile(
    join(projectDir, 'once.json'),
    '{"id": "once", "jobs": {"a": {"steps": [{"uses": "set"}]}}}',
  );
  expect(await result('workflows', 'run', 'once.json')).toMatchObject({ workflowId: 'once' });
  const planned = await result('workflows', 'run', 'once.json', '--at', '2040-01-31T13:00:00+01:00');
  expect(planned).toMatchObject({ status: 'queued', runAt: Date.UTC(2040, 0, 31, 12) });
  const wrong = await svc('workflows', 'run', 'ship', '--input', '{n: 1}');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--input is not valid JSON')]);
});

test('workflows run <file>: every fault has its line and column, and the line itself', async () => {
  const { svc, projectDir } = await setUp();
  const write = (...lines: string[]) => writeFile(join(projectDir, 'bad.yaml'), lines.join('\n'));
  await write(
    'id: bad',
    'jobs:',
    '  a:',
    '    steps:',
    '      - uses: htp',
    '      - with: {a: 1}',
    'wrong: 1',
  );
  const shape = await svc('workflows', 'run', 'bad.yaml');
  expect([shape.code, shape.stderr]).toEqual([
    1,
    expect.stringMatching(
      /bad\.yaml has 3 problems:\n\s*bad\.yaml:5:15 jobs\.a\.steps\[0\]\.uses: nothing runs "htp"[^\n]*\n\s+\| - uses: htp\n\s*bad\.yaml:6:9 jobs\.a\.steps\[1\]\.uses: is missing: name a command or a kind of step[^\n]*\n.*\n\s*bad\.yaml:7:8 wrong: is not a known key/,
    ),
  ]);
  await write('id: bad', 'jobs: [', '  a');
  const syntax = await svc('workflows', 'run', 'bad.yaml', '--json');
  expect(JSON.parse(syntax.stdout).error.details).toMatchObject({
    file: 'bad.yaml',
    issues: [{ line: expect.any(Number), column: expect.any(Number) }],
  });
});

test('workflows: approve, cancel, rerun; schedules; jobs', async () => {
  const { it, svc, result } = await setUp();
  const run = await result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": true}');
  await it.until(run.id, 'waiting');
  expect((await svc('workflows', 'show', run.id)).stdout).toContain('waits for approval');
  expect(await result('workflows', 'approve', run.id, 'main.gate', '--comment', 'fine')).toEqual({
    accepted: true,
    approved: true,
  });
  await it.until(run.id, 'succeeded');
  const again = await result('workflows', 'rerun', run.id, '--from', 'main.set');
  expect(again).toMatchObject({ rerunOf: run.id });
  await it.until(again.id, 'succeeded');
  const other = await result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": true}');
  await it.until(other.id, 'waiting');
  expect(await result('workflows', 'cancel', other.id)).toEqual({ cancelled: true, status: 'cancelled' });
  expect(await result('workflows', 'cancel', other.id)).toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  expect((await result('schedules', 'list')).items).toMatchObject([{ id: 'ship:dawn', paused: false }]);
  expect(await result('schedules', 'pause', 'ship:dawn')).toMatchObject({ paused: true });
  expect(await result('jobs', 'submit', 'nobody/sync')).toMatchObject({ code: 'JOB_NOT_FOUND' });
  expect((await svc('jobs', 'list')).stdout).toContain('There are no jobs.');
});

test('workflows: pause and resume a run, and a workflow', async () => {
  const { it, svc, result } = await setUp();
  const start = () => result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": true}');
  const run = await start();
  await it.until(run.id, 'waiting');
  expect(await result('workflows', 'pause', run.id)).toMatchObject({ id: run.id, pauseScope: 'run' });
  expect((await svc('workflows', 'pause', run.id)).stdout).toMatch(/status\s+waiting \(paused, approval\)/);
  expect((await svc('workflows', 'resume', run.id)).stdout).toMatch(/status\s+waiting \(approval\)/);
  const paused = await svc('workflows', 'pause', '--workflow', 'ship');
  expect(paused.stdout).toBe(
    'The workflow ship is paused.\nIts runs stay queued. Runs that have begun continue.\n',
  );
  expect((await svc('workflows', 'list')).stdout).toContain('ship (paused)');
  const queued = await start();
  expect((await svc('workflows', 'runs')).stdout).toContain('queued (paused)');
  expect((await result('workflows', 'runs', '--paused')).items).toMatchObject([{ id: queued.id }]);
  const toCancel = await result('workflows', 'cancel', '--paused', '--dry-run');
  expect(toCancel.matching).toMatchObject({ count: 1, sample: [{ id: queued.id }] });
  expect(await result('workflows', 'resume', '--workflow', 'ship')).toEqual({
    workflowId: 'ship',
    paused: false,
  });
  await it.until(queued.id, 'waiting');
  await svc('workflows', 'pause', '--workflow', 'ship');
  it.services.definitions.register([]);
  expect((await svc('workflows', 'list')).stdout).toContain('paused, but not registered: ship\n');
  await svc('workflows', 'resume', '--workflow', 'ship');
  expect((await result('workflows', 'list')).pausedUnregistered).toEqual([]);
  expect(await result('workflows', 'pause', '--workflow', 'none')).toMatchObject({
    code: 'WORKFLOW_NOT_FOUND',
  });
  for (const args of [[], [run.id, '--workflow', 'ship']])
    expect(await svc('workflows', 'pause', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Pass either a run id or --workflow <id>.'),
    });
});

test('workflows rerun: shows what is reused, and takes another input', async () => {
  const { it, svc, result } = await setUp();
  const run = await result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": false}');
  await it.until(run.id, 'succeeded');
  const kept = await svc('workflows', 'rerun', run.id, '--from', 'main.set', '--dry-run');
  expect(kept.stdout).toMatch(/^Reused: main\.gate\nRuns again: main\.set\n/);
  const input = ['--input', '{"n": 5, "gate": false}'];
  const decided = await svc('workflows', 'rerun', run.id, '--from', 'main.set', ...input, '--dry-run');
  expect([decided.code, decided.stderr]).toEqual([1, expect.stringContaining('The approval "main.gate"')]);
  const from = ['workflows', 'rerun', run.id, '--from', 'main.gate', ...input];
  const shown = await svc(...from, '--dry-run');
  expect(shown.stdout).toMatch(/^Reused: nothing\nRuns again: main\.gate, main\.set\n/);
  const again = await result(...from);
  expect((await it.until(again.id, 'succeeded')).output).toEqual({ v: 10 });
  const refused = await svc('workflows', 'rerun', run.id, '--from', 'main.none', '--dry-run');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('no step "main.none"')]);
});

test('workflows: all runs that match are cancelled or run again, after a dry run and a question', async () => {
  const { it, svc, result } = await setUp();
  const ids: string[] = [];
  for (let n = 0; n < 3; n++)
    ids.push((await result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": true}')).id);
  for (const id of ids) await it.until(id, 'waiting');
  const all = ['workflows', 'cancel', '--status', 'waiting'];
  expect((await svc(...all, '--dry-run')).stdout).toBe('3 runs match.\n');
  const asked = await svc(...all);
  expect([asked.code, asked.stderr]).toEqual([3, expect.stringContaining('Cancel 3 runs?')]);
  expect((await svc(...all, '--yes')).stdout).toBe('3 runs cancelled.\n');
  const dry = await result('workflows', 'rerun', '--status', 'cancelled', '--dry-run');
  expect(dry).toMatchObject({ matching: { count: 3, isComplete: true }, items: [] });
  const rest = await result('workflows', 'rerun', '--status', 'cancelled', '--cursor', dry.nextCursor);
  expect(rest).toMatchObject({ items: [{}, {}, {}], refused: [], nextCursor: null });
  const both = await svc('workflows', 'cancel', ids[0]!, '--all');
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('Pass a run id, or --all')]);
  expect((await svc('workflows', 'rerun', '--all', '--from', 'main.set')).code).toBe(2);
});

test('workflows: the flags that continue a bulk action hold absolute times', async () => {
  const { it, result } = await setUp();
  const run = await result('workflows', 'run', 'ship', '--input', '{"n": 4, "gate": true}');
  await it.until(run.id, 'waiting');
  const dry = await result('workflows', 'cancel', '--since', '20000d', '--dry-run');
  expect(dry.continueWith).toMatch(/^--since \d{4}-\d\d-\d\dT\S+Z --cursor \S+$/);
  const relative = ['workflows', 'cancel', '--since', '20000d', '--cursor', dry.nextCursor];
  expect(await result(...relative)).toMatchObject({ code: 'VALIDATION_ERROR' });
  const rest = await result('workflows', 'cancel', ...dry.continueWith.split(' '));
  expect(rest).toMatchObject({ items: [{}], nextCursor: null });
  const again = await result('workflows', 'rerun', '--since', '20000d', '--until', '2100-01-01', '--dry-run');
  expect(again.continueWith).toMatch(/^--since \S+Z --until \S+Z --cursor \S+$/);
});
