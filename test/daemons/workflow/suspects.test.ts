import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { isPoison, isSuspect } from '../../../src/daemons/workflow/domain/engine/poison.ts';
import { tempDir } from '../../support/daemon.ts';
import { programFile } from '../../support/program.ts';
import { openEngine } from './support/engine.ts';

const POLL = { timeout: 30_000 };

let program: string;

beforeAll(async () => {
  program = await programFile(fileURLToPath(new URL('./programs/suspects.ts', import.meta.url)));
});

interface Started {
  lines: string[];
  /** Waits for so many lines that begin with the text; answers what follows in them. */
  saw(start: string, count: number): Promise<string[]>;
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  exited: Promise<unknown>;
}

function start(
  dataDir: string,
  { slots = 64, steps = 0, expressions = 0, deadly = 0, death = 'crash' } = {},
): Started {
  const args = [dataDir, slots, steps, expressions, deadly, death].map(String);
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line));
  onTestFinished(() => void child.kill('SIGKILL'));
  const matching = (text: string) => lines.filter((line) => line.startsWith(text));
  return {
    lines,
    exited,
    async saw(text, count) {
      await expect.poll(() => matching(text).length, POLL).toBeGreaterThanOrEqual(count);
      return matching(text).map((line) => line.slice(text.length).trim());
    },
    async end(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

/** The runs as the next start finds them. */
async function recovered(dataDir: string, ids: string[], hadFault = true) {
  const it = await openEngine({ dataDir, exclusive: true, hadFault, kinds: [] });
  onTestFinished(() => it.close());
  const find = async () => Promise.all(ids.map(async (id) => (await it.store.runs.find(null, id))!));
  const before = await find();
  await it.engine.start();
  return { before, after: await find(), load: (seq: number) => it.store.runs.load(seq), store: it.store };
}

test('an expression that kills the service at each start fails its run at the third, with all its parts', async () => {
  const dataDir = await tempDir();
  const first = start(dataDir, { expressions: 1 });
  const [id] = await first.saw('begun', 1);
  await first.saw('evaluating', 1);
  await first.end('SIGKILL');
  for (let round = 0; round < 2; round++) {
    const next = start(dataDir);
    await next.saw('evaluating', 1);
    await next.end('SIGKILL');
  }
  const { after, load, store } = await recovered(dataDir, [id!]);
  expect(after[0]).toMatchObject({ status: 'failed', error: expect.stringContaining('"poison"') });
  const { jobs, steps } = (await load(after[0]!.seq))!;
  expect([...jobs, ...steps].map(({ status }) => status)).toEqual(['failed', 'failed']);
  expect(steps[0]!.error).toContain('poison');
  expect((await store.runs.attempts(after[0]!.seq)).map(({ status }) => status)).toEqual(
    Array(3).fill('interrupted'),
  );
}, 60_000);

test('an expression that kills the service in place, before anything is written, fails its run at the fourth', async () => {
  const dataDir = await tempDir();
  const innocent = start(dataDir, { steps: 1 });
  const [other] = await innocent.saw('begun', 1);
  await innocent.end('SIGTERM');
  await start(dataDir, { deadly: 1 }).exited;
  for (let round = 0; round < 3; round++) await start(dataDir).exited;
  const it = await openEngine({ dataDir, exclusive: true, hadFault: true, kinds: [] });
  onTestFinished(() => it.close());
  const { runs } = await it.store.runs.list('default', { kind: 'workflow', limit: 10 });
  const guilty = runs.find(({ id }) => id !== other)!;
  expect(guilty).toMatchObject({ status: 'running', inFlight: true, crashes: 2 });
  await it.engine.start();
  expect(await it.store.runs.find(null, guilty.id)).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('"poison"'),
  });
}, 60_000);

test('runs that waited for a slot at each crash are not to blame', async () => {
  const dataDir = await tempDir();
  const first = start(dataDir, { slots: 1, steps: 20 });
  const ids = await first.saw('begun', 20);
  const [guilty] = await first.saw('step', 1);
  await first.end('SIGKILL');
  for (let round = 0; round < 2; round++) {
    const next = start(dataDir, { slots: 1 });
    expect(await next.saw('step', 1)).toEqual([guilty]);
    await next.end('SIGKILL');
  }
  const { after } = await recovered(dataDir, ids);
  expect(after.map(({ id, status, crashes }) => [id, status === 'failed', crashes])).toEqual(
    ids.map((id) => [id, id === guilty, id === guilty ? 3 : 0]),
  );
}, 60_000);

test('after two crashes the runs that were in flight begin one at a time, beside others', async () => {
  const dataDir = await tempDir();
  const first = start(dataDir, { steps: 3 });
  const ids = await first.saw('begun', 3);
  await first.saw('step', 3);
  await first.end('SIGKILL');
  const second = start(dataDir);
  await second.saw('step', 3);
  await second.end('SIGKILL');
  const third = start(dataDir, { steps: 1 });
  const [fresh] = await third.saw('begun', 1);
  // The suspects are ahead of it in the queue.
  const begun = await third.saw('step', 2);
  expect(begun).toContain(fresh);
  expect(begun.filter((id) => ids.includes(id))).toHaveLength(1);
  await third.end('SIGKILL');
  const fourth = start(dataDir, { steps: 1 });
  const next = await fourth.saw('step', 3);
  // The one that was alone is given up, and it is the turn of the second.
  expect(next).toContain(fresh);
  expect(next).not.toContain(begun.find((id) => ids.includes(id)));
  expect(next.filter((id) => ids.includes(id))).toHaveLength(1);
}, 90_000);

test('an orderly stop with steps in flight counts as no crash', async () => {
  const dataDir = await tempDir();
  const first = start(dataDir, { steps: 1 });
  const ids = await first.saw('begun', 1);
  await first.saw('step', 1);
  await first.end('SIGTERM');
  for (let round = 0; round < 3; round++) {
    const next = start(dataDir);
    await next.saw('step', 1);
    await next.end('SIGTERM');
  }
  const { after } = await recovered(dataDir, ids);
  expect(after[0]).toMatchObject({ crashes: 0, kills: 0 });
  expect(after[0]!.status).not.toBe('failed');
}, 60_000);

test('a run that was alone in flight at each kill from outside goes on, beside others', async () => {
  const dataDir = await tempDir();
  const first = start(dataDir, { steps: 2 });
  const ids = await first.saw('begun', 2);
  await first.saw('step', 2);
  await first.end('SIGKILL');
  for (let round = 0; round < 4; round++) {
    const next = start(dataDir, { death: 'kill' });
    await next.saw('step', 2);
    await next.end('SIGKILL');
  }
  const { after } = await recovered(dataDir, ids, false);
  expect(after.map(({ status, crashes, kills }) => [status, crashes, kills])).toEqual([
    ['queued', 0, 5],
    ['queued', 0, 5],
  ]);
}, 60_000);

test('ten kills with work of a run in flight weigh as one crash, so that even one who sends them comes to an end', () => {
  expect(isPoison({ crashes: 2, kills: 9 }, 3)).toBe(false);
  expect(isPoison({ crashes: 2, kills: 10 }, 3)).toBe(true);
  expect(isPoison({ crashes: 0, kills: 29 }, 3)).toBe(false);
  expect(isPoison({ crashes: 0, kills: 30 }, 3)).toBe(true);
  expect(isSuspect({ crashes: 0, kills: 19 }, 3)).toBe(false);
  expect(isSuspect({ crashes: 1, kills: 10 }, 3)).toBe(true);
});
