import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { writeFiles } from './daemons/marketplace/support.ts';
import { spawnCli } from './support/cli.ts';
import { tempDir } from './support/daemon.ts';
import { isAlive } from './support/is-alive.ts';
import { connectTo } from './support/mcp.ts';
import { answering, modernClient, request, startTask } from './support/mcp-tasks.ts';
import { FREE_PORTS, freePort } from './support/ports.ts';
import { userEnvironment } from './support/user-environment.ts';

/** Sleeps in a plugin, which is in flight when the platform is killed, then asks. */
const WORKFLOW = `
id: release
mcp: { expose: true }
jobs:
  main:
    steps:
      - { id: build, uses: shop/build, idempotent: true }
      - { id: ask, uses: approval, with: { message: Release? } }
      - { id: done, uses: set, with: { released: "\${{ steps.build.output.built }}" } }
    outputs: { released: "\${{ steps.done.output.released }}" }
outputs: { released: "\${{ jobs.main.outputs.released }}" }
`;
const PLUGIN = {
  'plugins/shop/svc.plugin.json': {
    ...{ schema: 'svc.plugin/3', id: 'shop', version: '1.0.0' },
    commands: [{ id: 'build', handler: 'shop.js#build' }],
  },
  'plugins/shop/package.json': { name: 'shop', version: '1.0.0', type: 'module' },
  'plugins/shop/shop.js': `
export async function build() {
  await new Promise((resolve) => setTimeout(resolve, 8000));
  return { built: 'v1' };
}
`,
};

test('tasks of both revisions outlive kill -9 of the whole platform and the clients that wait', {
  timeout: 300_000,
}, async () => {
  const port = await freePort();
  const folder = await writeFiles(await tempDir(), {
    ...PLUGIN,
    'workflows/release.yaml': WORKFLOW,
    'svc.config.json': {
      ...FREE_PORTS,
      gateway: { ...FREE_PORTS.gateway, port },
      plugins: ['./plugins/*'],
    },
  });
  const svc = async (...args: string[]) => {
    const { json, stderr, code } = await spawnCli([...args, '--json'], {
      cwd: folder,
      env: userEnvironment(),
    });
    expect(code, stderr).toBe(0);
    return json.result;
  };
  onTestFinished(async () => void (await spawnCli(['down'], { cwd: folder, env: userEnvironment() })));
  await svc('up', '-d');
  const url = `http://127.0.0.1:${port}`;
  await svc('roles', 'grant', 'host:agent', 'editor');
  const { token } = await svc('tokens', 'mint', 'agent');

  const asked: unknown[] = [];
  const answers = [{ action: 'accept', content: {} }];
  const legacy = await connectTo(url, token, 'legacy', answering(answers, asked));
  const modern = modernClient(url, token);
  const first = await startTask(legacy, 'workflow_release');
  const second = await modern.request('tools/call', { name: 'workflow_release', arguments: {} });
  const waiting = request(legacy, 'tasks/result', { taskId: first.taskId }).catch((error: unknown) => error);
  // The kill comes while the plugin works.
  const states = async () =>
    Promise.all(
      [first, second].map(async ({ taskId }) => (await svc('workflows', 'show', taskId)).steps[0].status),
    );
  await expect.poll(states, { timeout: 30_000 }).toContain('running');

  const { services, pid: supervisor } = await svc('status');
  const pids = [supervisor, ...services.map(({ pid }: { pid: number }) => pid)];
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await expect.poll(() => pids.filter(isAlive), { timeout: 20_000 }).toEqual([]);
  await svc('up', '-d');
  // The wait has ended with the connection. The same client goes on, and a new one could.
  await Promise.race([waiting, sleep(1000)]);
  const renewed = await connectTo(url, token, 'legacy', answering(answers, asked));
  const result = await request(renewed, 'tasks/result', { taskId: first.taskId }, { timeout: 60_000 });
  expect(result.structuredContent).toMatchObject({ status: 'succeeded', output: { released: 'v1' } });
  expect(asked).toMatchObject([{ message: expect.stringMatching(/^Release\?/) }]);
  expect((await request(legacy, 'tasks/list', {})).tasks).toHaveLength(2);

  const { taskId } = second;
  const status = async () => (await modern.request('tasks/get', { taskId })).status;
  await expect.poll(status, { timeout: 60_000, interval: 500 }).toBe('input_required');
  const { inputRequests } = await modern.request('tasks/get', { taskId });
  const inputResponses = { [Object.keys(inputRequests)[0]!]: { action: 'accept', content: {} } };
  await modern.request('tasks/update', { taskId, inputResponses });
  await expect.poll(status, { timeout: 60_000, interval: 500 }).toBe('completed');
});
