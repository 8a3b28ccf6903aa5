import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { tempDir } from '../../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { startMcp } from '../../../support/mcp.ts';
import { startTokenProxy } from '../../../support/token-proxy.ts';

const run = promisify(execFile);
const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js');

const SCENARIOS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-mrtr-composition',
  'tasks-request-headers',
  'tasks-required-task-error',
  'tasks-dispatch-and-envelope',
];

/** Checks that fail because of something that the platform does not offer. An entry that passes fails the test. */
const NOT_OFFERED: Record<string, string> = {
  'sep-2663-tasks-get-status-failed': 'Runs end with results of the tool, not with errors of the protocol.',
  'sep-2663-mrtr-synchronous-before-task-creation': 'No tool asks before it starts its run.',
  'sep-2663-server-returns-missing-capability-when-required': 'No tool can be called as a task only.',
  'tasks-headers-tolerate-mcp-method-on-tools-call': 'A notice comes before texts of plugins.',
};

const workflow = (name: string, jobs: Record<string, object>) => ({
  id: name.replaceAll('_', '-'),
  mcp: { expose: true, name },
  jobs: Object.fromEntries(
    Object.entries(jobs).map(([id, step]) => [id, { steps: [{ id: 'do', ...step }] }]),
  ),
});
const ask = (message: string) => ({ uses: 'approval', with: { message } });
const WORKFLOWS = {
  slow: workflow('slow_compute', {
    main: { uses: '@acme/shop/nap', with: { seconds: '${{ input.seconds }}' } },
  }),
  fail: workflow('failing_job', { main: { uses: 'set', with: { none: '${{ input.none.at.all }}' } } }),
  delete: workflow('confirm_delete', { main: ask('Delete?') }),
  inputs: workflow('multi_input', { one: ask('One?'), two: ask('Two?') }),
};
const CODE = `
import { content, ok } from 'svc-platform/sdk';
export const greet = (ctx, { name }) => ok(content({ type: 'text', text: 'Hello, ' + name + '!' }));
export const nap = async (ctx, { seconds }) => {
  const { setTimeout: sleep } = await import('node:timers/promises');
  await sleep(seconds * 1000, undefined, { signal: ctx.signal });
  return { seconds };
};
`;
const commands = [
  { id: 'nap', handler: 'shop.js#nap' },
  { id: 'greet', handler: 'shop.js#greet', mcp: { expose: true, name: 'greet' } },
];

test('the scenarios of the tasks extension pass', { timeout: 300_000 }, async () => {
  const project = { workflows: WORKFLOWS, manifest: { commands }, code: CODE };
  const { gateway } = await startMcp({
    project,
    config: { gateway: { mcp: { callsPerMinute: 100_000, concurrentCalls: 100 } } },
  });
  const url = `${await startTokenProxy(gateway.url, ADMIN_TOKEN)}/mcp`;
  const faults: string[] = [];
  const notOffered: string[] = [];
  for (const scenario of SCENARIOS) {
    const folder = await tempDir();
    const args = [SUITE, 'server', '--url', url, '--scenario', scenario, '-o', folder];
    await run(process.execPath, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }).catch(() => {});
    const [name] = await readdir(folder);
    if (!name) faults.push(`${scenario}: it did not run`);
    const checks = name ? JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) : [];
    for (const { id, status, errorMessage } of checks)
      if (status === 'FAILURE' && NOT_OFFERED[id]) notOffered.push(id);
      else if (status === 'FAILURE') faults.push(`${scenario}: ${id}: ${errorMessage}`);
  }
  expect(faults).toEqual([]);
  expect(notOffered.toSorted()).toEqual(Object.keys(NOT_OFFERED).toSorted());
});
