import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { inBraces } from '../../src/daemons/workflow/domain/definition/templates.ts';
import { bodyOf, finish } from '../daemons/gateway/connections/support.ts';
import type { AnyJson } from '../support/any-json.ts';
import { leakForms } from '../support/leak-forms.ts';
import { type MessageReceiver, startReceiver } from '../support/message-receiver.ts';
import { OAUTH_CLIENT_SECRET, startOAuthProvider } from '../support/oauth-provider.ts';
import { startOtlpReceiver } from '../support/otlp.ts';
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
const CONNECTION = 'crm';

const PLUGIN = {
  'package.json': { name: 'leaky', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'leaky',
    version: '1.0.0',
    permissions: {
      secrets: NAMES,
      connections: [CONNECTION],
      network: ['127.0.0.1'],
      platform: { jobs: true, workflows: true, emit: true },
    },
    events: { 'leak.happened': { schema: { type: 'object' } } },
    commands: ['use', 'fail', 'echo'].map((id) => ({ id, handler: `h.js#${id}`, mcp: { expose: true } })),
    workflows: [{ id: 'coded', handler: 'h.js#coded' }],
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
    import { defineWorkflow } from 'svc-platform/sdk';
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
      // Before the connection exists, there is no token.
      const token = await ctx.connections.token('${CONNECTION}').catch(() => null);
      if (token !== null) {
        all.token = forms(token);
        console.log('token', token);
        ctx.log.info('token ' + token, all.token);
      }
      await ctx.emit('leak.happened', all);
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
    export const coded = defineWorkflow({
      id: 'coded',
      run: async (ctx) => {
        const plain = await ctx.step('read', () => ctx.secrets.get('PLAIN'));
        const outside = await ctx.secrets.get('LINES');
        const inputs = await ctx.step('use', async () => ({ plain, outside, again: await ctx.secrets.get('PATTERN') }));
        const failed = await ctx
          .step('fail', async () => { throw new Error('rejected ' + (await ctx.secrets.get('PATTERN'))); }, { retry: { maxAttempts: 1 } })
          .catch((error) => error.message);
        const called = await ctx.invoke('leaky/echo', { token: outside }).catch((error) => error.message);
        await ctx.emit('leak.happened', { outside, called });
        return { plain, inputs, failed, called };
      },
    });
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

/** A run that fails with the secrets in its error. */
const DOOMED = {
  id: 'doomed',
  jobs: { main: { steps: [{ id: 'fail', uses: 'leaky/fail', with: {}, retry: { maxAttempts: 1 } }] } },
};

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

async function project(config: object, env: Record<string, string> = {}) {
  const { port, bodies } = await echoServer();
  const traces = await startOtlpReceiver();
  const platform = await testPlatform(
    {
      plugins: ['plugins/*'],
      workflow: { port: 0, httpAllow: ['127.0.0.1'] },
      outgoing: { allow: ['127.0.0.1'] },
      ...config,
    },
    { OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint, ...env },
  );
  const root = join(platform.folder, 'plugins', 'leaky');
  await mkdir(root, { recursive: true });
  for (const [name, content] of Object.entries(PLUGIN))
    await writeFile(join(root, name), typeof content === 'string' ? content : JSON.stringify(content));
  await mkdir(join(platform.folder, 'workflows'));
  await writeFile(join(platform.folder, 'workflows', 'leak.yaml'), JSON.stringify(workflow(port)));
  await writeFile(join(platform.folder, 'workflows', 'doomed.yaml'), JSON.stringify(DOOMED));
  return { platform, bodies, alerts: await startReceiver(), traces };
}

interface Form {
  name: string;
  form: string;
  bytes: Buffer;
}

const formsOf = (name: string, value: string): Form[] =>
  leakForms(value).map((form) => ({ name, form, bytes: Buffer.from(form) }));

const forms: Form[] = Object.entries(SECRETS).flatMap(([name, value]) => formsOf(name, value));

function leaksIn(place: string, content: Buffer): string[] {
  return forms
    .filter(({ bytes }) => content.includes(bytes))
    .map(({ name, form }) => `${place}: ${name} as ${form.slice(0, 30)}`);
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

type Call = Awaited<ReturnType<typeof api>>;

/** Connects an account, whose tokens and client secret must not leak either. */
async function authorize(call: Call, gatewayUrl: string): Promise<void> {
  const provider = await startOAuthProvider();
  provider.trust(`http://localhost:${new URL(gatewayUrl).port}/oauth/callback`);
  const { body } = await call('POST', '/api/v1/connections', bodyOf(provider));
  expect((await finish(body.authorizeUrl)).status).toBe(200);
  expect((await call('POST', `/api/v1/connections/${CONNECTION}/refresh`)).body.status).toBe('active');
  forms.push(...formsOf('client secret', OAUTH_CLIENT_SECRET));
  for (const { access_token, refresh_token, id_token } of provider.answers)
    for (const [name, token] of Object.entries({ access_token, refresh_token, id_token }))
      forms.push(...formsOf(name, token!));
}

/** Returns all emitted messages. */
async function messagesOf(call: Call): Promise<unknown[]> {
  const { items } = (await call('GET', '/api/v1/messages?limit=200')).body;
  expect(items.length).toBeGreaterThan(3);
  const found = await Promise.all(
    items.map(({ id }: { id: string }) => call('GET', `/api/v1/messages/${id}`)),
  );
  expect(JSON.stringify(found)).toContain('in a text: [redacted].');
  return found;
}

/** Calls tools as an agent does, and returns their results. */
async function toolResults(platform: TestPlatform, runId: string): Promise<string[]> {
  const { SVC_GATEWAY_URL: url, SVC_TOKEN: token } = (await platform.svc('status', '--env')).json.result.env;
  const client = new Client({ name: 'test', version: '1.0.0' });
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  await client.connect(transport as never);
  const tool = (name: string, input: object = {}) =>
    client
      .callTool({ name, arguments: input as never })
      .catch((error: unknown) => ({ failed: String(error) }));
  const { items } = (await (await fetch(`${url}/api/v1/webhooks/deliveries`, { headers })).json()) as AnyJson;
  const results = [
    await tool('leaky_use'),
    await tool('leaky_fail'),
    await tool('run_show', { runId }),
    await tool('runs_list'),
    await tool('logs_search'),
    await tool('deliveries_search'),
    ...(await Promise.all(
      items.slice(0, 4).map(({ webhookId }: AnyJson) => tool('delivery_show', { webhookId })),
    )),
  ];
  await client.close();
  // The tools did use the secrets.
  expect(JSON.stringify(results[0])).toContain('[redacted]');
  expect(JSON.stringify(results[1])).toContain('rejected');
  return results.map((result) => JSON.stringify(result));
}

/** Uses the secrets in every way, and returns all that callers got. */
async function useAll(platform: TestPlatform, alerts: MessageReceiver): Promise<unknown[]> {
  const call = await api(platform);
  const answers: unknown[] = [];
  for (const [name, value] of Object.entries(SECRETS))
    answers.push(await call('PUT', `/api/v1/secrets/${name}`, { value }));
  answers.push(await call('GET', '/api/v1/secrets'));
  expect(answers).toHaveLength(NAMES.length + 1);
  const { SVC_GATEWAY_URL: url } = (await platform.svc('status', '--env')).json.result.env;
  await authorize(call, url);
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
  await call('POST', '/api/v1/alerts/channels', { name: 'ops', type: 'webhook', url: alerts.url });
  for (const kind of ['run.failed', 'delivery.failed'])
    await call('POST', '/api/v1/alerts/rules', {
      ...{ name: kind.replace('.', '-'), kind, channels: ['ops'], groupWaitMs: 0 },
    });
  answers.push((await platform.svc('workflows', 'run', 'doomed')).stdout);
  await expect
    .poll(() => alerts.received.some(({ body }) => body.includes('run.failed')), { timeout: 60_000 })
    .toBe(true);
  const { id } = (await platform.svc('workflows', 'run', 'leak')).json.result;
  await expect

    .poll(async () => (await call('GET', `/api/v1/workflows/runs/${id}`)).body.status, { timeout: 60_000 })
    .toBe('succeeded');
  answers.push(
    (await platform.svc('workflows', 'show', id)).stdout,
    (await platform.svc('workflows', 'logs', id)).stdout,
  );
  answers.push((await platform.svc('workflows', 'rerun', id)).stdout);
  const coded = (await platform.svc('workflows', 'run', 'coded')).json.result;
  await expect
    .poll(async () => (await call('GET', `/api/v1/workflows/runs/${coded.id}`)).body.status, {
      timeout: 60_000,
    })
    .toBe('succeeded');
  answers.push(await call('GET', `/api/v1/workflows/runs/${coded.id}`));
  answers.push((await platform.svc('workflows', 'logs', coded.id)).stdout);
  answers.push(...(await messagesOf(call)), ...(await toolResults(platform, id)));
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
  const { platform, bodies, alerts, traces } = await project({});
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const answers = await useAll(platform, alerts);
  // The values themselves reach the services that need them.
  expect(bodies[0]).toContain(SECRETS.PLAIN);
  expect(JSON.parse(bodies[0]!.slice(SECRETS.PLAIN.length)).deep[0].pattern).toBe(SECRETS.PATTERN);
  await crash(platform);
  answers.push((await platform.svc('run', 'leaky', 'use')).stdout);
  answers.push((await platform.svc('report', 'report.tar.gz')).stdout);
  await platform.svc('down');
  answers.push(alerts.received, traces.spans);
  expect(traces.spans.length).toBeGreaterThan(50);
  expect(
    answers.flatMap((answer) =>
      leaksIn('answer', Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))),
    ),
  ).toEqual([]);
  expect(await leaksOnDisk(platform.dataDir)).toEqual([]);
});

test.skipIf(!POSTGRES_PROGRAMS)('no secret is in a table of PostgreSQL', SLOW, async () => {
  const url = await emptyPostgres();
  const { platform, alerts, traces } = await project({ store: { url } });
  expect((await platform.svc('migrate', '--yes')).code).toBe(0);
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const answers = await useAll(platform, alerts);
  await platform.svc('down');
  answers.push(alerts.received, traces.spans);
  expect(traces.spans.length).toBeGreaterThan(50);
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
