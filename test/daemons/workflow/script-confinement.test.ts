import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { describe, expect, test, vi } from 'vitest';
import { cancelRun, listRunLogs } from '../../../src/contracts/index.ts';
import { keepTenantSecret } from '../../../src/kit/telemetry/redact.ts';
import { isMachineRoot } from '../../../src/plugins/sandbox/script-args.ts';
import { atEnd } from '../../support/at-end.ts';
import { processesOf } from './support/processes-of.ts';
import { startScript } from './support/scripts.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const isRoot = isMachineRoot();
/** Tasks that the kernel allows a script: without root, the limit also covers the user's other processes. */
const maxTasks = isRoot ? 1024 : 4096;

/** Runs one script to its end and returns its step and its log. */
async function ended(it: TestWorkflow, step: object) {
  const id = await startScript(it, [{ id: 'script', ...step }]);
  await it.until(id, 'succeeded', 'failed');
  const { items } = await it.call(listRunLogs, { params: { runId: id }, query: { limit: 1000 } });
  return { ...(await it.step(id, 'main.script')), lines: items.map(({ message }) => message) };
}

/** Runs two scripts that share files, and returns the user ids of the second one. */
async function usersOf(mark: string): Promise<number[]> {
  const it = await startWorkflow();
  const id = await startScript(it, [
    { id: 'one', run: 'echo kept > note; chmod 600 note; mkdir own; chmod 700 own' },
    { id: 'two', run: `cat note; touch own/x /tmp/x /dev/shm/x; ${mark}` },
  ]);
  await vi.waitFor(() => expect(processesOf(mark).length).toBe(1), { timeout: 20_000, interval: 50 });
  const status = readFileSync(`/proc/${processesOf(mark)[0]}/status`, 'utf8');
  await it.call(cancelRun, { params: { runId: id } });
  await it.until(id, 'cancelled');
  await expect.poll(() => processesOf(mark)).toEqual([]);
  return /^Uid:\s+(.*)$/m.exec(status)![1]!.split('\t').map(Number);
}

test.skipIf(!isRoot)('a script has a user of its own (the tests must run as root)', async () => {
  const users = await usersOf('sleep 31536002');
  expect(new Set(users).size).toBe(1);
  expect(users[0]).toBeGreaterThanOrEqual(0x7000_0000);
});

test.skipIf(isRoot)('a script has the user of the service (the tests must not run as root)', async () => {
  const own = process.getuid!();
  expect(await usersOf('sleep 31536004')).toEqual([own, own, own, own]);
});

describe('a script', () => {
  test('cannot start more tasks than the kernel allows its user', { timeout: 60_000 }, async () => {
    const it = await startWorkflow();
    const run = [
      'import threading',
      'event = threading.Event()',
      'begun = 0',
      'try:',
      `    while begun < ${maxTasks + 100}:`,
      '        threading.Thread(target=event.wait).start()',
      '        begun += 1',
      'except RuntimeError as error:',
      '    print(error)',
      'event.set()',
      'print("begun", begun)',
    ].join('\n');
    const { status, lines } = await ended(it, { shell: 'python', run });
    expect(status).toBe('succeeded');
    expect(lines[0]).toContain("can't start new thread");
    expect(Number(/begun (\d+)/.exec(lines.join())![1])).toBeLessThan(maxTasks);
  });

  test('has no effect by its variables on the program that switches to its user', async () => {
    const it = await startWorkflow();
    // With this variable, the loader of a program lists its libraries and does not start it.
    const { lines } = await ended(it, {
      run: 'echo begun',
      env: { LD_TRACE_LOADED_OBJECTS: '1', PATH: '/usr/bin' },
    });
    expect(lines.join('\n')).toContain('libc.so');
    expect(lines.join('\n')).not.toMatch(/libcap-ng|begun/);
    const value = 'it\'s "$(id)" `id` \\ \n end';
    const read = await ended(it, {
      shell: 'node',
      run: 'console.log(JSON.stringify([process.env.V, Object.keys(process.env).filter((key) => /^SVC_ENV_/.test(key))]))',
      env: { V: value },
    });
    expect(JSON.parse(read.lines[0]!)).toEqual([value, []]);
  });
});

test.skipIf(!isRoot)('a script cannot read a project below /usr (only root can make one there)', async () => {
  const projectDir = await mkdtemp('/usr/local/share/svc-test-');
  atEnd(() => rm(projectDir, { recursive: true }));
  await chmod(projectDir, 0o755);
  await writeFile(join(projectDir, 'note'), 'not-for-scripts');
  const it = await startWorkflow({ projectDir, dataDir: join(projectDir, '.svc') });
  const run =
    'ls -A "$AT"; cat "$AT/note" || echo hidden; touch "$AT/x" || echo read-only; echo kept > file; cat file';
  const { lines } = await ended(it, { run, env: { AT: projectDir } });
  expect(lines.filter((line) => !/^(cat|touch):/.test(line))).toEqual(['hidden', 'read-only', 'kept']);
});

test('processes that a script leaves in the background end with its step', async () => {
  const it = await startWorkflow();
  const mark = 'sleep 31536003';
  const { error, output } = await ended(it, {
    run: `(setsid ${mark} &); nohup ${mark} & echo "left=$(jobs -r | wc -l)" >> "$SVC_OUTPUT"`,
  });
  expect(error).toBeNull();
  expect(output).toEqual({ left: '1' });
  await expect.poll(() => processesOf(mark)).toEqual([]);
});

test('secrets are masked in the log, the outputs and the error of a script', async () => {
  const it = await startWorkflow();
  const secret = 'first-line-of-the-secret\nsecond-line-of-the-secret';
  keepTenantSecret({ namespaceId: 'default', name: 'A' }, secret);
  const env = { A: secret };
  const print =
    'echo "$A"; echo "$A" >&2; echo -n "$A" | base64 -w0; printf "a<<END\\n%s\\nEND\\n" "$A" >> "$SVC_OUTPUT"';
  const good = await ended(it, { run: print, env });
  expect(good.output).toEqual({ a: '[redacted]' });
  const bad = await ended(it, { run: `${print}; echo "$A" >> "$SVC_OUTPUT"`, env });
  expect(bad.error!.message).toContain('Line 5 of $SVC_OUTPUT is not an output');
  const failed = await ended(it, { run: `${print}; exit 1`, env });
  const all = JSON.stringify([good, bad, failed]);
  expect(all).not.toMatch(/line-of-the-secret/);
  expect(all).not.toContain(Buffer.from(secret).toString('base64').slice(4, 24));
});

test.each([
  ['seq -f "k%g=1" 1 257', 'there are more than 256 outputs', 257],
  ['echo a=1; echo; echo "b c=2"', '"b c" is not a name', 3],
  ['printf "a=1\\nb<<END\\nx\\n"', 'the delimiter "END" does not follow', 2],
])('the outputs of `%s` are refused with their line', async (print, message, line) => {
  const it = await startWorkflow();
  const { error } = await ended(it, { run: `(${print}) > "$SVC_OUTPUT"` });
  expect(error).toMatchObject({ code: 'STEP_FAILED', details: { reason: 'output', line } });
  expect(error!.message).toContain(`Line ${line} of $SVC_OUTPUT is not an output: `);
  expect(error!.message).toContain(message);
});
