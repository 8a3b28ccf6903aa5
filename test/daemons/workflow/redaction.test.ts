import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { getJob, listRunLogs, startRun, submitJob } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** Known by their shape, by the name they stand under, and by value: a key of the test daemon. */
const SHAPED = 'Bearer s3cr3t-by-shape-0123456789';
const NAMED = 'hunter2-by-name';
const VALUED = 'an-internal-test-secret-of-enough-length';
const SECRETS = [SHAPED, NAMED, VALUED];

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'leaky',
  version: '1.0.0',
  commands: [
    { id: 'say', handler: 'leaky.js#say' },
    { id: 'refuse', handler: 'leaky.js#refuse' },
  ],
  jobs: [{ id: 'work', handler: 'leaky.js#work' }],
  workflows: [
    { id: 'saying', jobs: { main: { steps: [{ id: 'say', uses: 'leaky/say' }] } } },
    {
      id: 'refusing',
      jobs: {
        main: { steps: [{ id: 'refuse', uses: 'leaky/refuse', retry: { maxAttempts: 2, initialMs: 1 } }] },
      },
    },
    { id: 'throwing', handler: 'leaky.js#throwing' },
  ],
};
const LEAKY = `
import { defineWorkflow } from 'svc-platform/sdk';
const text = 'sent ${SHAPED} and ${VALUED}';
export const say = (ctx) => { ctx.log.info(text); return {}; };
export const refuse = () => ({ exitCode: 1, error: { code: 'REFUSED', message: text,
  details: { list: Array.from({ length: 150 }, (_, i) => i), deep: { a: { b: { c: { d: { e: { f: { g: 'kept', password: '${NAMED}' } } } } } } } } } });
export const work = (ctx) => { ctx.log.warn(text); throw new Error(text); };
export const throwing = defineWorkflow({ id: 'throwing', async run(ctx) {
  ctx.log.info(text);
  await ctx.step('broken', () => { throw new Error(text); }).catch(() => {});
  throw new Error('in the end: ' + text);
} });
`;

async function startLeaky(): Promise<TestWorkflow> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/leaky');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'package.json'), '{"name": "leaky", "version": "1.0.0", "type": "module"}');
  await writeFile(join(folder, 'leaky.js'), LEAKY);
  return startWorkflow({ projectDir, config: LEDGER_CONFIG });
}

const begin = async (it: TestWorkflow, workflowId: string): Promise<string> =>
  (await it.call(startRun, { body: { workflowId } as never })).run.id;

const logsOf = async (it: TestWorkflow, id: string) =>
  (await it.call(listRunLogs, { params: { runId: id as never }, query: { limit: 50 } })).items;

/** The store's files, its write-ahead log included, read by another process: closing them here would drop its locks. */
async function stored({ dataDir }: TestWorkflow): Promise<string> {
  const files = (await readdir(dataDir)).filter((name) => name.startsWith('workflow.db'));
  const content = execFileSync('cat', files, { cwd: dataDir, encoding: 'latin1', maxBuffer: 1e8 });
  expect(content.length).toBeGreaterThan(1000);
  return content;
}

function expectNoSecret(text: string): void {
  for (const secret of SECRETS) expect(text.includes(secret), secret).toBe(false);
}

test("a line is redacted alike in a run's log, its stream, the store and the platform's log", async () => {
  const it = await startLeaky();
  const id = await begin(it, 'saying');
  await it.until(id, 'succeeded');
  const shown = 'sent [redacted] and [redacted]';
  expect(it.logs.lines.map(({ message }) => message)).toContain(shown);
  expect(await logsOf(it, id)).toMatchObject([{ level: 'info', message: shown, stepId: 'main.say' }]);
  const stream = await it.fetch(`/api/v1/workflows/runs/${id}/logs`, {
    headers: { accept: 'text/event-stream' },
  });
  const streamed = await stream.text();
  expect(streamed).toContain(shown);
  expectNoSecret(streamed + (await stored(it)));
});

test('errors of steps, attempts and runs are redacted, and nothing is cut off them', async () => {
  const it = await startLeaky();
  const id = await begin(it, 'refusing');
  await expect
    .poll(async () => {
      it.clock.advance(1000);
      await it.services.engine.tick();
      return (await it.run(id)).status;
    })
    .toBe('failed');
  const [run, step] = [await it.run(id), await it.step(id, 'main.refuse')];
  const error = {
    code: 'REFUSED',
    message: 'sent [redacted] and [redacted]',
    details: {
      list: Array.from({ length: 150 }, (_, i) => i),
      deep: { a: { b: { c: { d: { e: { f: { g: 'kept', password: '[redacted]' } } } } } } },
    },
  };
  expect(step).toMatchObject({
    error,
    history: [
      { attempt: 1, error },
      { attempt: 2, error },
    ],
  });
  expect(run.error).toMatchObject({ details: { error } });
  expectNoSecret(JSON.stringify([run, step, await logsOf(it, id)]) + (await stored(it)));
});

test('what code logs and throws is redacted, and so are the lines and errors of jobs', async () => {
  const it = await startLeaky();
  const id = await begin(it, 'throwing');
  const { error } = await it.until(id, 'failed');
  expect(error?.message).toBe('in the end: sent [redacted] and [redacted]');
  expect((await it.step(id, 'main.broken')).error?.message).toContain('sent [redacted]');
  expect((await logsOf(it, id)).map(({ message }) => message)).toContain('sent [redacted] and [redacted]');

  const { job } = await it.call(submitJob, { body: { handler: 'leaky/work' } as never });
  await expect.poll(async () => (await it.call(getJob, { params: { jobId: job.id } })).status).toBe('failed');
  const done = await it.call(getJob, { params: { jobId: job.id } });
  expect(done.error?.message).toContain('sent [redacted] and [redacted]');
  const lines = (await logsOf(it, job.id)).map(({ message }) => message);
  expect(lines[0]).toBe('sent [redacted] and [redacted]');
  expectNoSecret(lines.join('\n'));
  expectNoSecret(JSON.stringify(done) + (await stored(it)));
});

test('outputs of http steps hold no credentials of the answer, and failures mask those of its body', async () => {
  const [it, ledger] = [await startWorkflow({ config: LEDGER_CONFIG }), await startLedger()];
  ledger.answer('login', (_, response) => {
    response.setHeader('set-cookie', [`session=${NAMED}; HttpOnly`, 'theme=dark']);
    response.setHeader('Authorization', SHAPED).setHeader('proxy-authorization', SHAPED);
    response.setHeader('authentication-info', `nextnonce="${NAMED}"`);
    response.setHeader('x-kept', 'yes').setHeader('content-type', 'application/json');
    response.end('{"user": "ada"}');
  });
  ledger.answer('denied', (_, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ got: SHAPED, password: NAMED, hint: 'log in' }));
  });
  const id = await it.start({
    steps: [
      { id: 'login', uses: 'http', with: { url: `${ledger.url}/login` } },
      { id: 'user', uses: 'set', with: { name: cel('steps.login.output.body.user') } },
      { id: 'denied', uses: 'http', with: { url: `${ledger.url}/denied/now?token=${NAMED}` } },
    ],
  });
  await it.until(id, 'failed');
  const { headers } = (await it.step(id, 'main.login')).output as { headers: Record<string, string> };
  expect(headers).toMatchObject({ 'x-kept': 'yes', 'content-type': 'application/json' });
  expect(Object.keys(headers).filter((name) => /cookie|authori|authentication/i.test(name))).toEqual([]);
  expect((await it.step(id, 'main.user')).output).toEqual({ name: 'ada' });
  const { error, history } = await it.step(id, 'main.denied');
  expect(error?.details).toEqual({
    status: 401,
    body: '{"got":"[redacted]","password":"[redacted]","hint":"log in"}',
  });
  const shown = JSON.stringify([headers, error, history, await logsOf(it, id), await it.run(id)]);
  expectNoSecret(shown);
});
