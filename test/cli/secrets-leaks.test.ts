import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { inBraces } from '../../src/daemons/workflow/domain/definition/templates.ts';
import type { AnyJson } from '../support/any-json.ts';
import { leakForms } from '../support/leak-forms.ts';
import { emptyPostgres, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { type TestPlatform, testPlatform } from './platform.ts';

const SLOW = { timeout: 300_000 };

const SECRETS = {
  PLAIN: `tok-${randomBytes(18).toString('base64url')}`,
  PATTERN: `^(${randomBytes(6).toString('hex')}+)+$|[x]{2}\\d.*?/&="`,
  LINES: `first "${randomBytes(12).toString('hex')}" line\nsecond 'ключ-🔑-${randomBytes(12).toString('hex')}' line`,
  LONG: randomBytes(24_000).toString('base64'),
};
const NAMES = Object.keys(SECRETS);

const PLUGIN = {
  'package.json': { name: 'leaky', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'leaky',
    version: '1.0.0',
    permissions: {
      secrets: NAMES,
      network: ['127.0.0.1'],
      platform: { jobs: true, workflows: true },
    },
    commands: ['use', 'fail', 'echo'].map((id) => ({ id, handler: `h.js#${id}` })),
    jobs: ['work', 'doom'].map((id) => ({ id, handler: `h.js#${id}` })),
    webhooks: [
      { event: 'hook', handler: 'h.js#hook', auth: { type: 'hmac', header: 'x-signature' } },
      { event: 'doom', handler: 'h.js#doomed', auth: { type: 'hmac', header: 'x-signature' } },
    ],
    rest: {
      basePath: '/v1/plugins/leaky',
      routes: [
        { method: 'GET', path: '/use', handler: 'h.js#use' },
        { method: 'GET', path: '/fail', handler: 'h.js#fail' },
      ],
    },
  },
  'h.js': `
    const forms = (value) => {
      const bytes = Buffer.from(value);
      return {
        value,
        base64: [0, 1, 2].map((n) => Buffer.concat([Buffer.alloc(n, 'x'), bytes]).toString('base64')),
        base64url: bytes.toString('base64url'),
        hex: [bytes.toString('hex'), bytes.toString('hex').toUpperCase()],
        url: [encodeURIComponent(value), new URLSearchParams({ value }).toString()],
        json: JSON.stringify({ value }),
        text: 'in a text: ' + value + '.',
        ['key ' + value]: true,
      };
    };
    async function leak(ctx) {
      const all = {};
      for (const name of ${JSON.stringify(NAMES)}) {
        const value = await ctx.secrets.get(name);
        all[name] = forms(value);
        console.log('console', value, { value });
        console.error(JSON.stringify({ value }));
        process.stdout.write('stdout ' + encodeURIComponent(value) + '\\n');
        ctx.log.info('log ' + value, all[name]);
        ctx.analytics.track('leaky.used', all[name]);
      }
      await ctx.jobs.submit('work', { nested: all.PLAIN, again: all.LINES }).catch((error) => ctx.log.warn(error.message));
      return all;
    }
    export const use = async (ctx) => (ctx.host === 'rest' ? { body: await leak(ctx) } : leak(ctx));
    export const fail = async (ctx) => {
      const all = await leak(ctx);
      throw Object.assign(new Error('rejected ' + JSON.stringify(all)), { code: all.PLAIN.value, name: all.PATTERN.value });
    };
    export const echo = (ctx, input) => ({ got: input, length: input.token.length });
    export const work = async (ctx, input) => ({ input, all: input.stop ? null : forms(await ctx.secrets.get('LINES')) });
    export const doom = fail;
    export const hook = (ctx) => leak(ctx);
    export const doomed = fail;`,
};

const workflow = (port: number): object => ({
  id: 'leak',
  permissions: { secrets: NAMES },
  outputs: { all: inBraces('jobs.main.outputs') },
  jobs: {
    main: {
      outputs: { echoed: inBraces('steps.call.output'), got: inBraces('steps.echo.output') },
      steps: [
        {
          id: 'call',
          uses: 'http',
          with: {
            url: `http://127.0.0.1:${port}/echo`,
            method: 'POST',
            headers: { 'x-token': inBraces('secrets.PLAIN') },
            body: { deep: [{ pattern: inBraces('secrets.PATTERN') }], lines: inBraces('secrets.LINES') },
          },
        },
        {
          id: 'refused',
          uses: 'http',
          continueOnError: true,
          with: { url: `http://127.0.0.1:${port}/fail`, method: 'POST', body: inBraces('secrets.PLAIN') },
        },
        {
          id: 'echo',
          uses: 'leaky/echo',
          with: { token: inBraces('secrets.LONG'), other: `got ${inBraces('steps.call.output.status')}` },
        },
        { id: 'use', uses: 'leaky/use', with: {} },
        { id: 'fail', uses: 'leaky/fail', with: {}, continueOnError: true, retry: { maxAttempts: 1 } },
      ],
    },
  },
});

/** Answers each request with all of it. */
async function echoServer(): Promise<{ port: number; bodies: string[] }> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text) => (body += text));
    request.on('end', () => {
      bodies.push(`${request.headers['x-token']} ${body}`);
      response.statusCode = request.url === '/fail' ? 400 : 200;
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({ headers: request.headers, body, encoded: Buffer.from(body).toString('base64') }),
      );
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, bodies };
}

async function project(
  config: object,
  env: Record<string, string> = {},
): Promise<{ platform: TestPlatform; bodies: string[] }> {
  const { port, bodies } = await echoServer();
  const platform = await testPlatform(
    { plugins: ['plugins/*'], workflow: { port: 0, httpAllow: ['127.0.0.1'] }, ...config },
    env,
  );
  const root = join(platform.folder, 'plugins', 'leaky');
  await mkdir(root, { recursive: true });
  for (const [name, content] of Object.entries(PLUGIN))
    await writeFile(join(root, name), typeof content === 'string' ? content : JSON.stringify(content));
  await mkdir(join(platform.folder, 'workflows'));
  await writeFile(join(platform.folder, 'workflows', 'leak.yaml'), JSON.stringify(workflow(port)));
  return { platform, bodies };
}

const FORMS = Object.entries(SECRETS).flatMap(([name, value]) =>
  leakForms(value).map((form) => ({ name, form, bytes: Buffer.from(form) })),
);

function leaksIn(place: string, content: Buffer): string[] {
  return FORMS.filter(({ bytes }) => content.includes(bytes)).map(
    ({ name, form }) => `${place}: ${name} as ${form.slice(0, 30)}`,
  );
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Searches every file, and every row of every database, whose texts can be split over pages. */
async function leaksOnDisk(dataDir: string): Promise<string[]> {
  const leaks: string[] = [];
  for (const file of await filesOf(dataDir)) {
    leaks.push(...leaksIn(file, await readFile(file)));
    if (!file.endsWith('.db')) continue;
    const db = new Sqlite(file, { readonly: true });
    const tables = db
      .prepare<[], string>(
        "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'",
      )
      .pluck()
      .all();
    for (const table of tables)
      for (const row of db.prepare<[], Record<string, unknown>>(`select * from "${table}"`).iterate())
        for (const [column, value] of Object.entries(row))
          if (value !== null)
            leaks.push(
              ...leaksIn(
                `${file} ${table}.${column}`,
                Buffer.isBuffer(value) ? value : Buffer.from(String(value)),
              ),
            );
    db.close();
  }
  return leaks;
}

async function leaksInPostgres(url: string): Promise<{ leaks: string[]; rows: number }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const leaks: string[] = [];
  let rows = 0;
  const { rows: tables } = await client.query<{ name: string }>(
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'svc'",
  );
  for (const { name } of tables) {
    const found = await client.query<Record<string, unknown>>(`select * from svc.${name}`);
    for (const row of found.rows)
      for (const [column, value] of Object.entries(row)) {
        if (value === null) continue;
        rows++;
        const text = Buffer.isBuffer(value)
          ? value
          : Buffer.from(typeof value === 'object' ? JSON.stringify(value) : String(value));
        leaks.push(...leaksIn(`${name}.${column}`, text));
      }
  }
  await client.end();
  return { leaks, rows };
}

async function api(
  platform: TestPlatform,
): Promise<(method: string, path: string, body?: object) => Promise<AnyJson>> {
  const { SVC_GATEWAY_URL: url, SVC_TOKEN: token } = (await platform.svc('status', '--env')).json.result.env;
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: response.status, body: await response.json() };
  };
}

/** Uses the secrets in every way, and returns all that callers got. */
async function useAll(platform: TestPlatform): Promise<unknown[]> {
  const call = await api(platform);
  const answers: unknown[] = [];
  for (const [name, value] of Object.entries(SECRETS))
    answers.push(await call('PUT', `/api/v1/secrets/${name}`, { value }));
  answers.push(await call('GET', '/api/v1/secrets'));
  expect(answers).toHaveLength(NAMES.length + 1);
  answers.push(
    (await platform.svc('run', 'leaky', 'use')).stdout,
    (await platform.svc('run', 'leaky', 'fail')).stdout,
  );
  answers.push(
    await call('GET', '/api/v1/plugins/leaky/use'),
    await call('GET', '/api/v1/plugins/leaky/fail'),
  );
  for (const event of ['hook', 'doom']) {
    await platform.svc('webhooks', 'provision', 'leaky', event);
    answers.push((await platform.svc('webhooks', 'send', 'leaky', event, '--data', '{}')).stdout);
  }
  for (const job of ['work', 'doom'])
    answers.push((await platform.svc('jobs', 'submit', `leaky/${job}`)).stdout);
  answers.push((await platform.svc('workflows', 'run', 'leak')).stdout);
  expect((await platform.svc('workflows', 'approve-secrets', 'leak', '--yes')).stdout).toContain('"ok":true');
  const { id } = (await platform.svc('workflows', 'run', 'leak')).json.result;
  await expect

    .poll(async () => (await call('GET', `/api/v1/workflows/runs/${id}`)).body.status, { timeout: 60_000 })
    .toBe('succeeded');
  answers.push(
    (await platform.svc('workflows', 'show', id)).stdout,
    (await platform.svc('workflows', 'logs', id)).stdout,
  );
  answers.push((await platform.svc('workflows', 'rerun', id)).stdout);
  answers.push((await call('GET', '/api/v1/webhooks/deliveries')).body);
  return answers;
}

async function crash(platform: TestPlatform): Promise<void> {
  for (const name of ['workflow', 'rest', 'gateway']) {
    const { pid } = await platform.service(name);
    process.kill(pid, 'SIGKILL');
    await expect.poll(async () => (await platform.service(name)).pid, { timeout: 60_000 }).not.toBe(pid);
  }
  await expect
    .poll(
      async () =>
        (await platform.svc('status')).json.result.services.every((one: AnyJson) => one.state === 'ready'),
      {
        timeout: 60_000,
      },
    )
    .toBe(true);
}

test('no secret is on disk or in an answer, however it was used', SLOW, async () => {
  const { platform, bodies } = await project({});
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const answers = await useAll(platform);
  // The values themselves reach the services that need them.
  expect(bodies[0]).toContain(SECRETS.PLAIN);
  expect(JSON.parse(bodies[0]!.slice(SECRETS.PLAIN.length)).deep[0].pattern).toBe(SECRETS.PATTERN);
  await crash(platform);
  answers.push((await platform.svc('run', 'leaky', 'use')).stdout);
  answers.push((await platform.svc('report', 'report.tar.gz')).stdout);
  await platform.svc('down');
  expect(
    answers.flatMap((answer) =>
      leaksIn('answer', Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))),
    ),
  ).toEqual([]);
  expect(await leaksOnDisk(platform.dataDir)).toEqual([]);
});

test.skipIf(!POSTGRES_PROGRAMS)('no secret is in a table of PostgreSQL', SLOW, async () => {
  const url = await emptyPostgres();
  const { platform } = await project({ store: { url } });
  expect((await platform.svc('migrate', '--yes')).code).toBe(0);
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const answers = await useAll(platform);
  await platform.svc('down');
  expect(
    answers.flatMap((answer) =>
      leaksIn('answer', Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))),
    ),
  ).toEqual([]);
  const { leaks, rows } = await leaksInPostgres(url);
  expect(rows).toBeGreaterThan(500);
  expect(leaks).toEqual([]);
  expect(await leaksOnDisk(platform.dataDir)).toEqual([]);
});
