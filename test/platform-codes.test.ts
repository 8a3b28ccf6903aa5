import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  cancelRun,
  getRun,
  installPlugin,
  PLATFORM_CODES,
  type PlatformCode,
  startRun,
  submitJob,
} from '../src/contracts/index.ts';
import { workflow } from '../src/daemons/workflow/index.ts';
import { loadConfig } from '../src/kit/config/config.ts';
import { PlatformError } from '../src/kit/errors/errors.ts';
import { greeter, pluginFolder, startMarketplace, writeFiles } from './daemons/marketplace/support.ts';
import { send, startRest, untilLoad } from './daemons/rest/support.ts';
import { startTestDaemon, tempDir } from './support/daemon.ts';
import { MEMBER_TOKEN, startGateway } from './support/gateway.ts';
import { LIBRARY_PROJECT } from './support/library.ts';

/** The codes of the specification's table, each reached through the door a user would reach it by. */

interface Outcome {
  code: unknown;
  status: number;
}

async function thrown(run: () => unknown): Promise<Outcome> {
  try {
    await run();
  } catch (error) {
    if (error instanceof PlatformError) return { code: error.code, status: error.status };
    throw error;
  }
  throw new Error('It was accepted.');
}

async function answered(response: Response | Promise<Response>): Promise<Outcome> {
  const reply = await response;
  const { error } = (await reply.json()) as { error: { code: string } };
  return { code: error.code, status: reply.status };
}

const SHOP = '/api/v1/plugins/shop';
async function routeAnswer(method: string, path: string, body?: unknown): Promise<Outcome> {
  const daemon = await startRest();
  const reply = await send(daemon, method, path, { body });
  return { code: (reply.body as { error: { code: string } }).error.code, status: reply.status };
}

/** Installs a plugin with this manifest beside one whose command is `taken`. */
const installing = (manifest: object) => async (): Promise<Outcome> => {
  const projectDir = await tempDir();
  const owner = greeter('1.0.0', { id: 'owner', commands: [{ id: 'taken', handler: 'h.js#greet' }] });
  await writeFiles(join(projectDir, 'plugins/owner'), owner);
  const daemon = await startMarketplace({ projectDir, dataDir: join(projectDir, '.svc') });
  const source = await pluginFolder(greeter('1.0.0', manifest));
  return thrown(() => daemon.call(installPlugin, { body: { source } }));
};

async function configOf(
  text: string,
  options: { profile?: string; configFile?: string } = {},
): Promise<Outcome> {
  const cwd = await tempDir();
  await writeFile(join(cwd, 'svc.config.json'), text);
  return thrown(() => loadConfig({ cwd, env: {}, ...options }));
}

const startWorkflow = (tenant: object = {}) =>
  startTestDaemon(workflow, { config: { tenants: { default: tenant } } });
const definition = (step: object) => ({ id: 'demo', jobs: { main: { steps: [step] } } });
const waiting = definition({ uses: 'wait', with: { ms: 3_600_000 } });

const CASES = {
  INVALID_MANIFEST: installing({ webhooks: [{ event: 'push', handler: 'h.js#greet' }] }),
  INVALID_HANDLER: installing({ commands: [{ id: 'a', handler: 'h.js#absent' }] }),
  PLUGIN_NOT_FOUND: async () => {
    const { fetch } = await startMarketplace();
    return answered(fetch('/api/v1/marketplace/plugins/absent'));
  },
  PLUGIN_CONFLICT: installing({ commands: [{ id: 'taken', handler: 'h.js#greet' }] }),
  CIRCULAR_DEPENDENCY: installing({ dependencies: { '@acme/greeter': '*' } }),
  MISSING_DEPENDENCY: installing({ dependencies: { absent: '*' } }),
  CONFIG_NOT_FOUND: () => configOf('{}', { configFile: 'absent.json' }),
  CONFIG_NOT_RESOLVED: () => configOf('{"profiles":{"staging":{}}}', { profile: 'test' }),
  CONFIG_PARSE_ERROR: () => configOf('{'),
  ADAPTER_NOT_CONFIGURED: async () => {
    const daemon = await startRest({ projectDir: LIBRARY_PROJECT });
    const body = { steps: [['llm', 'complete', 'hello']], failing: 'thrown' };
    const reply = await send(daemon, 'POST', '/api/v1/plugins/library/call', { body });
    return { code: (reply.body as { error: { code: string } }).error.code, status: reply.status };
  },
  EXECUTION_TIMEOUT: async () => {
    const daemon = await startRest();
    const answer = daemon.fetch(`${SHOP}/hang`, { method: 'POST' });
    await untilLoad(daemon, '@acme/shop', 'running');
    daemon.clock.advance(1500);
    return answered(answer);
  },
  EXECUTION_ERROR: () => routeAnswer('POST', `${SHOP}/answers/throw`),
  HOST_MISMATCH: () => routeAnswer('GET', `${SHOP}/wrong-kind`),
  SANDBOX_ERROR: async () => {
    const projectDir = await tempDir();
    await writeFiles(
      join(projectDir, 'plugins/nosy'),
      greeter('1.0.0', {
        id: 'nosy',
        permissions: { fs: { read: [], write: ['./not-there'] } },
        rest: { basePath: '/v1/plugins/nosy', routes: [{ method: 'GET', path: '/', handler: 'h.js#greet' }] },
      }),
    );
    const daemon = await startRest({ projectDir, dataDir: join(projectDir, '.svc') });
    return answered(daemon.fetch('/api/v1/plugins/nosy'));
  },
  WORKFLOW_NOT_FOUND: async () => {
    const daemon = await startWorkflow();
    return thrown(() => daemon.call(startRun, { body: { workflowId: 'absent' } }));
  },
  WORKFLOW_RUN_NOT_FOUND: async () => {
    const { fetch } = await startWorkflow();
    return answered(fetch('/api/v1/workflows/runs/run_absent'));
  },
  WORKFLOW_ALREADY_CANCELLED: async () => {
    const daemon = await startWorkflow();
    const { run } = await daemon.call(startRun, { body: { definition: waiting } });
    const params = { runId: run.id };
    await daemon.call(cancelRun, { params });
    await expect.poll(async () => (await daemon.call(getRun, { params })).status).toBe('cancelled');
    return thrown(() => daemon.call(cancelRun, { params }));
  },
  JOB_NOT_FOUND: async () => {
    const daemon = await startWorkflow();
    return thrown(() => daemon.call(submitJob, { body: { handler: 'absent/job' } }));
  },
  STEP_FAILED: async () => {
    const daemon = await startWorkflow();
    const body = { definition: definition({ uses: 'approval', with: { message: 'Go?', timeoutMs: 1000 } }) };
    const { run } = await daemon.call(startRun, { body });
    const read = () => daemon.call(getRun, { params: { runId: run.id } });
    await expect
      .poll(
        async () => {
          daemon.clock.advance(1001);
          return (await read()).status;
        },
        { timeout: 20_000 },
      )
      .toBe('failed');
    // A run's failure is told in its record; the table's status is that of an API that would answer with it.
    return { code: (await read()).error?.code, status: PLATFORM_CODES.STEP_FAILED };
  },
  RATE_LIMIT_EXCEEDED: async () => {
    const daemon = await startGateway();
    const provision = () =>
      daemon.fetch('/api/v1/webhooks/provision', {
        method: 'POST',
        headers: { authorization: `Bearer ${MEMBER_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ pluginId: 'orders', event: 'absent' }),
      });
    for (let count = 0; count < 10; count++) await provision();
    const limited = await provision();
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    return answered(limited);
  },
  QUOTA_EXCEEDED: async () => {
    const daemon = await startWorkflow({ runsPerDay: 1 });
    await daemon.call(startRun, { body: { definition: waiting } });
    return thrown(() => daemon.call(startRun, { body: { definition: waiting } }));
  },
  CONCURRENT_LIMIT_EXCEEDED: async () => {
    const daemon = await startWorkflow({ concurrentRuns: 1 });
    await daemon.call(startRun, { body: { definition: waiting } });
    return thrown(() => daemon.call(startRun, { body: { definition: waiting } }));
  },
  UNAUTHORIZED: async () => {
    const { fetch } = await startGateway();
    return answered(fetch('/api/v1/webhooks'));
  },
  FORBIDDEN: async () => {
    const { fetch } = await startGateway();
    const headers = { authorization: `Bearer ${MEMBER_TOKEN}` };
    return answered(fetch('/api/v1/hosts/some-host', { method: 'DELETE', headers }));
  },
  PERMISSION_DENIED: () => routeAnswer('GET', `${SHOP}/state-denied`),
} satisfies Partial<Record<PlatformCode, () => Promise<Outcome>>>;

/** As in the specification's table, in its order. */
const TABLE = [
  'INVALID_MANIFEST',
  'INVALID_HANDLER',
  'PLUGIN_NOT_FOUND',
  'PLUGIN_CONFLICT',
  'CIRCULAR_DEPENDENCY',
  'MISSING_DEPENDENCY',
  'CONFIG_NOT_FOUND',
  'CONFIG_NOT_RESOLVED',
  'CONFIG_PARSE_ERROR',
  'ADAPTER_NOT_CONFIGURED',
  'EXECUTION_TIMEOUT',
  'EXECUTION_ERROR',
  'HOST_MISMATCH',
  'SANDBOX_ERROR',
  'WORKFLOW_NOT_FOUND',
  'WORKFLOW_RUN_NOT_FOUND',
  'WORKFLOW_ALREADY_CANCELLED',
  'JOB_NOT_FOUND',
  'STEP_FAILED',
  'RATE_LIMIT_EXCEEDED',
  'QUOTA_EXCEEDED',
  'CONCURRENT_LIMIT_EXCEEDED',
  'UNAUTHORIZED',
  'FORBIDDEN',
  'PERMISSION_DENIED',
] as const;

test.each(TABLE)('%s', async (code) => {
  expect(await CASES[code]()).toEqual({ code, status: PLATFORM_CODES[code] });
});

test('every code of the table has its test case', () => {
  expect(Object.keys(CASES).sort()).toEqual([...TABLE].sort());
});
