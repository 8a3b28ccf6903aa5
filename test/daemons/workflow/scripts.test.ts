import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { cancelRun, listRunLogs } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { processesOf } from './support/processes-of.ts';
import { startScript } from './support/scripts.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** Runs one script to its end. */
async function ended(it: TestWorkflow, step: object, options?: Parameters<typeof startScript>[2]) {
  const id = await startScript(it, [{ id: 'script', ...step }], options);
  await it.until(id, 'succeeded', 'failed', 'timed_out', 'cancelled');
  return { ...(await it.step(id, 'main.script')), id };
}

async function linesOf(it: TestWorkflow, id: string): Promise<string[]> {
  const lines: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { limit: 1000, ...(cursor === undefined ? {} : { cursor }) };
    const page = await it.call(listRunLogs, { params: { runId: id }, query });
    lines.push(...page.items.map(({ message }) => message));
    cursor = page.nextCursor;
  }
  return lines;
}

describe('a script', () => {
  test('has its variables, writes outputs and log lines, and shares its folder with the next one', async () => {
    const it = await startWorkflow();
    const id = await startScript(
      it,
      [
        {
          id: 'one',
          run: 'echo "hello $WHO"; echo kept > note; echo "n=1" >> "$SVC_OUTPUT"\nprintf "text<<END\\na=b\\n\\nc\\nEND\\n" >> "$SVC_OUTPUT"',
          env: { WHO: cel('input.who'), LIST: cel('input.list'), COUNT: 2 },
        },
        {
          id: 'two',
          shell: 'python',
          run: 'import os\nprint("list", os.environ["LIST"], os.environ["SVC_STEP_ID"])\nopen(os.environ["SVC_OUTPUT"], "a").write("note=" + open("note").read())',
          env: { LIST: cel('input.list') },
        },
        {
          id: 'three',
          shell: 'node',
          run: 'console.log("n is", process.env.N)',
          env: { N: cel('steps.one.output.n') },
        },
        { id: 'four', shell: 'sh', run: 'echo "$0" && pwd' },
      ],
      { input: { who: '$(id); `id`"\'', list: [1, 'b'] } },
    );
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.one')).output).toEqual({ n: '1', text: 'a=b\n\nc' });
    expect((await it.step(id, 'main.two')).output).toEqual({ note: 'kept' });
    const lines = await linesOf(it, id);
    expect(lines).toEqual(
      expect.arrayContaining(['hello $(id); `id`"\'', 'list [1,"b"] main.two', 'n is 1', '/workspace']),
    );
    await expect.poll(() => existsSync(join(it.dataDir, 'workspaces', id))).toBe(false);
  });

  test('fails with its exit code and the last lines of stderr, without secrets', async () => {
    const it = await startWorkflow();
    const token = `ghp_${'a1B2'.repeat(9)}`;
    const { id, status, error } = await ended(it, {
      run: 'for i in $(seq 1 30); do echo "line $i" >&2; done; echo "token $T" >&2; exit 3',
      env: { T: token },
    });
    expect(status).toBe('failed');
    expect(error).toMatchObject({ code: 'STEP_FAILED', details: { exitCode: 3 } });
    expect(error!.message).toContain('The script ended with exit code 3');
    expect(error!.message).toContain('line 30');
    expect(error!.message).not.toContain('line 20\n');
    expect(JSON.stringify([error, await linesOf(it, id)])).not.toContain(token);
  });

  test('ends at the first command that fails, also in a pipe', async () => {
    const it = await startWorkflow();
    expect(await ended(it, { run: 'false | cat\necho "never=1" >> "$SVC_OUTPUT"' })).toMatchObject({
      status: 'failed',
      output: null,
    });
  });

  test.each([
    ['no output at all', 'Line 1 of $SVC_OUTPUT is not an output: it is neither name=value nor'],
    ['a b=1', '"a b" is not a name'],
    ['text<<END\nx', 'the delimiter "END" does not follow'],
  ])('fails with the output %j', async (text, message) => {
    const it = await startWorkflow();
    const { error } = await ended(it, { run: 'printf "%s" "$TEXT" > "$SVC_OUTPUT"', env: { TEXT: text } });
    expect(error).toMatchObject({ code: 'STEP_FAILED', message: expect.stringContaining(message) });
  });

  test('is killed with everything it started at its timeout and at a cancel', async () => {
    const it = await startWorkflow();
    const mark = `sleep ${Math.floor(it.clock.now() % 100_000) + 100_000}`;
    const id = await startScript(it, [
      { id: 'script', run: `trap "" TERM INT; (setsid ${mark} &); echo begun; ${mark}` },
    ]);
    await vi.waitFor(async () => expect(await linesOf(it, id)).toContain('begun'), { timeout: 10_000 });
    await expect.poll(() => processesOf(mark).length).toBeGreaterThan(1);
    await it.call(cancelRun, { params: { runId: id } });
    await it.until(id, 'cancelled');
    await expect.poll(() => processesOf(mark)).toEqual([]);

    const late = await startScript(it, [{ id: 'script', run: `echo begun; ${mark}`, timeout: '30s' }]);
    await vi.waitFor(async () => expect(await linesOf(it, late)).toContain('begun'), { timeout: 10_000 });
    it.clock.advance(30_000);
    await it.until(late, 'failed', 'timed_out');
    await expect.poll(() => processesOf(mark)).toEqual([]);
  });
});

describe('a hostile script', () => {
  test('sees neither the machine, the data of the platform nor the variables of the service', async () => {
    vi.stubEnv('GATEWAY_INTERNAL_SECRET', 'not-for-scripts');
    const it = await startWorkflow({ env: { GATEWAY_INTERNAL_SECRET: 'not-for-scripts' } });
    await writeFile(join(it.dataDir, 'secret-file'), 'not-for-scripts');
    const { id, status } = await ended(it, {
      run: [
        'env; cat /proc/1/environ || true',
        `cat ${it.dataDir}/secret-file ${it.dataDir}/workflow.db && exit 9 || true`,
        'for path in /root /home /etc/shadow /etc/passwd /var /run /sys /mnt; do [ ! -e $path ] || exit 9; done',
        'ls .. ; cd /; ls; echo x > /x && exit 9 || true',
        'echo x > /usr/bin/x && exit 9 || true',
        'echo x > /svc/script && exit 9 || true',
        'rm -f "$SVC_OUTPUT" && exit 9 || true',
        'mount -t tmpfs none /usr && exit 9 || true',
        'kill -9 1 || true',
        'echo survived',
      ].join('\n'),
      env: { LD_PRELOAD: '/workspace/evil.so', PYTHONPATH: '/x' },
    });
    vi.unstubAllEnvs();
    expect(status).toBe('succeeded');
    const text = (await linesOf(it, id)).join('\n');
    expect(text).toContain('survived');
    expect(text).not.toContain('not-for-scripts');
  });

  test('has no network unless the step says so', async () => {
    const it = await startWorkflow();
    const { port } = new URL(it.url);
    const run = `exec 3<>/dev/tcp/127.0.0.1/${port} && echo connected`;
    const off = await ended(it, { run });
    expect(off.status).toBe('failed');
    expect((await ended(it, { run, network: true })).status).toBe('succeeded');
    const { id } = await ended(it, {
      shell: 'python',
      run: 'import os\nprint(os.listdir("/sys/class/net") if os.path.exists("/sys") else "none")',
    });
    expect(await linesOf(it, id)).toContain('none');
  });

  test.each<[string, object, string]>([
    ['a fork bomb', { run: ':(){ :|:& };:; sleep 30' }, 'started too many processes'],
    [
      'memory without end',
      { shell: 'python', run: 'a = []\nwhile True: a.append(bytearray(8 << 20))', memoryMb: 64 },
      'used more than 64 MB of memory',
    ],
    ['files in memory', { run: 'head -c 60M /dev/zero > /tmp/x; sleep 30', memoryMb: 32 }, 'MB of memory'],
    ['output without end', { run: 'yes "a line of output without end"' }, 'wrote more than 16 MB of output'],
    ['empty lines without end', { run: 'yes ""' }, 'wrote more than 16 MB of output'],
    ['a line without end', { run: 'yes x | tr -d "\\n" >&2' }, 'wrote more than 16 MB of output'],
    [
      'more than 1 GiB of files',
      {
        shell: 'python',
        run: 'import os, time\nfor name in "ab":\n    os.posix_fallocate(os.open(name, os.O_CREAT | os.O_WRONLY), 0, 600 << 20)\ntime.sleep(30)',
      },
      'wrote more than 1024 MB of files',
    ],
    [
      'more than 50,000 files',
      { run: 'seq -f "file-%.0f" 50001 | xargs touch; sleep 30' },
      'wrote more than 50000 files',
    ],
    [
      'outputs of 1 GB',
      { run: 'head -c 1G /dev/zero > "$SVC_OUTPUT"; sleep 30' },
      'wrote more than 1 MiB to',
    ],
    ['sparse outputs of 1 GB', { run: 'truncate -s 1G "$SVC_OUTPUT"' }, '$SVC_OUTPUT has 1073741824 bytes'],
  ])('ends: %s', { timeout: 60_000 }, async (_name, step, message) => {
    const it = await startWorkflow();
    const { id, status, error } = await ended(it, step);
    expect(status).toBe('failed');
    expect(error!.message).toContain(message);
    await expect.poll(() => existsSync(join(it.dataDir, 'workspaces', id)), { timeout: 10_000 }).toBe(false);
  });

  test('fills the log of its run with 5,000 lines at most', async () => {
    const it = await startWorkflow();
    const { id, status } = await ended(it, { run: 'seq 1 6000' });
    expect(status).toBe('succeeded');
    const lines = await linesOf(it, id);
    expect(lines.filter((line) => /^\d+$/.test(line))).toEqual(
      Array.from({ length: 5000 }, (_, n) => String(n + 1)),
    );
    expect(lines).toContain('Only the first 5000 lines are kept.');
    expect(lines.length).toBeLessThan(5010);
  });

  test('cannot replace its folders by links, nor keep them from being removed', async () => {
    const it = await startWorkflow();
    const target = await tempDir();
    await writeFile(join(target, 'kept'), '');
    const { id } = await ended(it, {
      run: 'ln -s "$TARGET" link; mkdir -p a/b; touch a/b/c; chmod 000 a/b a; chmod 500 .',
      env: { TARGET: target },
    });
    await expect.poll(() => existsSync(join(it.dataDir, 'workspaces', id))).toBe(false);
    expect(existsSync(join(target, 'kept'))).toBe(true);
  });

  test('gets no option of the sandbox by a value', async () => {
    const it = await startWorkflow();
    const { error } = await ended(
      it,
      { run: 'ls /mnt-of-host', env: { X: cel('input.x') } },
      { input: { x: 'a\0--ro-bind\0/\0/mnt-of-host' } },
    );
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining('NUL') });
  });
});
