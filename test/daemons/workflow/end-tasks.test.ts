import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { listWorkflows, ManifestV3 } from '../../../src/contracts/index.ts';
import { MAX_HANDLER_DEPTH } from '../../../src/daemons/workflow/domain/ends/end-handlers.ts';
import { endScope } from '../../../src/daemons/workflow/domain/run/ended-run.ts';
import { manifestFaults } from '../../../src/daemons/workflow/manifest-faults.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { keepTenantSecret } from '../../../src/kit/telemetry/redact.ts';
import { days, hours, minutes } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeCodePlugin } from './support/code.ts';
import { endTasks } from './support/end-tasks.ts';
import { cel, startWorkflow } from './support/workflow.ts';

const MANIFEST = { schema: 'svc.plugin/3', id: 'code', version: '1.0.0' };

describe('a fault of a handler', () => {
  const broken = { if: 'run.', workflow: 'notify' };
  test.for([
    ['on.failure.if', broken],
    ['on.failure[0].if', [broken]],
    ['on.failure[1].if', [{ workflow: 'notify' }, broken]],
  ] as const)('is reported at %s, as the handler is written', ([path, failure]) => {
    expect(() => endTasks({ failure })).toThrow(`The workflow definition is not valid: ${path}:`);
  });

  test('is reported at the message with its index', () => {
    const workflow = {
      ...{ id: 'flow', handler: 'flows.js#flow' },
      on: { failure: [{ workflow: 'flow' }, { message: { type: 'stock.empty' } }] },
    };
    const manifest = ManifestV3.parse({ ...MANIFEST, workflows: [workflow] });
    expect(manifestFaults(manifest).map(({ path }) => path)).toEqual([
      'workflows[0].on.failure[1].message.type',
    ]);
  });
});

describe('a plugin without permissions.platform.workflows', () => {
  const flow = (id: string, workflow?: string) => ({
    ...{ id, handler: 'flows.js#flow' },
    ...(workflow ? { on: { success: { workflow } } } : {}),
  });
  const faultOf = (workflow: string) =>
    `needs permissions.platform.workflows in the manifest of code, because "${workflow}" is not a workflow of this plugin`;
  const PERMITTED = { permissions: { platform: { workflows: true } } };

  test('starts only its own workflows', async () => {
    const faultsOf = (workflows: object[], more = {}) =>
      manifestFaults(ManifestV3.parse({ ...MANIFEST, workflows, ...more })).map(
        ({ path, message }) => `${path} ${message}`,
      );
    expect(faultsOf([flow('flow', 'own'), flow('own')])).toEqual([]);
    expect(faultsOf([flow('flow', 'payout')], PERMITTED)).toEqual([]);
    expect(faultsOf([flow('flow', 'payout')])).toEqual([
      `workflows[0].on.success.workflow ${faultOf('payout')}`,
    ]);
  });

  test('registers no workflow that would start others, also if it declares their id', async () => {
    const projectDir = await tempDir();
    const payout = { id: 'payout', jobs: { main: { steps: [{ uses: 'set' }] } } };
    await writeFile(join(projectDir, 'payout.json'), JSON.stringify(payout));
    const source = `export const flow = defineWorkflow({ id: 'flow', run: async () => null });`;
    const workflows = [flow('flow', 'payout'), flow('payout')];
    await writeCodePlugin(projectDir, source, { workflows });
    const it = await startWorkflow({ projectDir, config: { workflows: ['payout.json'] } });
    const { items, faults } = await it.call(listWorkflows);
    expect(items.map(({ id }) => id)).toEqual(['payout']);
    expect(faults).toContainEqual(
      expect.objectContaining({ path: 'on.success.workflow', message: faultOf('payout') }),
    );
  });
});

test('the guide lists the facts about an ended run', async () => {
  const { deps } = endTasks({ failure: { workflow: 'notify' } });
  const { run } = endScope((await deps.runs.find(null, 'run_0'))!);
  const guide = await readFile(new URL('../../../docs/workflows.md', import.meta.url), 'utf8');
  const [, list = ''] = /may use `input` and `run`:(.*?), where/s.exec(guide)!;
  const listed = Array.from(list.matchAll(/`(\w+)/g), ([, name]) => name);
  expect(listed.toSorted()).toEqual(Object.keys(run as object).toSorted());
});

describe('a message of an ended run', () => {
  const message = { type: 'order.failed', application: cel('input.customer') };
  const sentFor = async (customer: unknown) => {
    const { handlers, sent, events, tasks } = endTasks({
      failure: { message },
      run: { input: JSON.stringify({ customer }) },
    });
    handlers.start();
    await expect.poll(() => tasks.size).toBe(0);
    return { sent: sent.map(({ application }) => application), events };
  };

  test('goes to the application that its expression returns, numbers as text', async () => {
    expect((await sentFor('c-1')).sent).toEqual(['c-1']);
    expect((await sentFor(7)).sent).toEqual(['7']);
  });

  test.for([
    [null, 'null'],
    [{}, 'an object'],
    ['', 'an empty string'],
    [true, 'a boolean'],
  ] as const)(
    'is not sent to other recipients if the expression returns %j',
    async ([customer, returned]) => {
      const { sent, events } = await sentFor(customer);
      expect(sent).toEqual([]);
      const data = { code: 'VALIDATION_ERROR', message: expect.stringContaining(returned) };
      expect(events).toMatchObject([{ type: 'run.handler_failed', data }]);
    },
  );
});

test('the limit of the depth applies to workflows and not to messages', async () => {
  const { handlers, tasks, sent, started } = endTasks({
    failure: [{ message: { type: 'order.failed' } }, { workflow: 'notify' }],
    run: { handlerDepth: MAX_HANDLER_DEPTH },
  });
  handlers.start();
  await expect.poll(() => tasks.size).toBe(0);
  expect(sent).toHaveLength(1);
  expect(started).toEqual([]);
});

describe('a handler that fails', () => {
  const unavailable = async () => {
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway does not answer.');
  };
  const levels = (logs: ReturnType<typeof endTasks>['logs']) =>
    logs.lines.filter(({ event }) => event === 'run.handler_failed').map(({ level }) => level);

  test('is logged at the first retry and when the retries end', async () => {
    const failure = { message: { type: 'order.failed' } };
    const { handlers, clock, logs, tasks, events, wakeAfter } = endTasks({ failure, send: unavailable });
    const [task] = tasks.values();
    handlers.start();
    for (let attempt = 1; attempt <= 3; attempt++) {
      await expect.poll(() => task!.attempts === attempt && task!.dueAt - clock.now() <= 4000).toBe(true);
      expect(levels(logs)).toEqual(['warn']);
      wakeAfter(attempt < 3 ? 2001 : days(7));
    }
    await expect.poll(() => events).toMatchObject([{ data: { code: 'SERVICE_UNAVAILABLE' } }]);
    expect(levels(logs)).toEqual(['warn', 'error']);
  });

  test('waits up to an hour for a workflow that is not registered', async () => {
    const { handlers, clock, tasks, deps } = endTasks({ failure: { workflow: 'notify' } });
    deps.definitions.require = () => {
      throw new PlatformError('WORKFLOW_NOT_FOUND', 'There is no workflow "notify".');
    };
    const [task] = tasks.values();
    task!.attempts = 20;
    handlers.start();
    await expect.poll(() => task!.dueAt - clock.now()).toBeGreaterThanOrEqual(minutes(30));
    expect(task!.dueAt - clock.now()).toBeLessThanOrEqual(hours(1));
  });

  test.for(['CONCURRENT_LIMIT_EXCEEDED', 'UNAUTHORIZED', 'NOT_FOUND', 'METHOD_NOT_ALLOWED'] as const)(
    'is tried again after %s',
    async (code) => {
      let attempts = 0;
      const { handlers, clock, tasks, started, wakeAfter } = endTasks({
        failure: { workflow: 'notify' },
        async start(key) {
          if (++attempts === 1) throw new PlatformError(code, 'no', { details: { workflowId: 'notify' } });
          tasks.delete(key);
          return {};
        },
      });
      handlers.start();
      await expect.poll(() => tasks.get('run_0/0')!.dueAt - clock.now()).toBeLessThanOrEqual(1000);
      wakeAfter(1001);
      await expect.poll(() => tasks.size).toBe(0);
      expect(started).toHaveLength(2);
    },
  );

  test('is not tried again if the definition of the run is lost', async () => {
    const { handlers, deps, events, tasks } = endTasks({ failure: { workflow: 'notify' } });
    deps.definitions.byHash = async () => {
      throw new PlatformError('WORKFLOW_NOT_FOUND', 'The definition h1 is no longer stored.');
    };
    handlers.start();
    await expect.poll(() => tasks.size).toBe(0);
    expect(events).toMatchObject([
      { type: 'run.handler_failed', data: { code: 'WORKFLOW_NOT_FOUND', handler: 0 } },
    ]);
  });

  test('is tried again if the definition of the run cannot be read', async () => {
    const { handlers, clock, deps, events, tasks } = endTasks({ failure: { workflow: 'notify' } });
    deps.definitions.byHash = async () => {
      throw new PlatformError('STORE_ERROR', 'The data store failed.');
    };
    const [task] = tasks.values();
    handlers.start();
    await expect.poll(() => task!.attempts).toBe(1);
    expect(task!.dueAt - clock.now()).toBeLessThanOrEqual(1000);
    expect(events).toEqual([]);
  });

  test('stores no secret of the tenant in the event', async () => {
    keepTenantSecret({ namespaceId: 'default', name: 'phrase' }, 'correct-horse-battery');
    const { handlers, events } = endTasks({
      failure: { message: { type: 'order.failed' } },
      async send() {
        throw new PlatformError('VALIDATION_ERROR', 'The value correct-horse-battery does not fit.');
      },
    });
    handlers.start();
    await expect.poll(() => events.length).toBe(1);
    expect(JSON.stringify(events)).not.toContain('correct-horse-battery');
    expect(events).toMatchObject([{ data: { handler: 0, code: 'VALIDATION_ERROR' } }]);
  });

  test('is logged when retention has deleted the run', async () => {
    const { handlers, logs, tasks, deps } = endTasks({ failure: { workflow: 'notify' } });
    deps.runs.find = async () => undefined;
    handlers.start();
    await expect.poll(() => tasks.size).toBe(0);
    expect(logs.lines).toMatchObject([{ level: 'error', reasonCode: 'WORKFLOW_RUN_NOT_FOUND' }]);
  });
});

test('a handler whose run exists already leaves no task', async () => {
  const { handlers, tasks, started, events } = endTasks({
    failure: { workflow: 'notify' },
    start: async () => ({ id: 'run_before', handles: null }),
  });
  handlers.start();
  await expect.poll(() => tasks.size).toBe(0);
  expect(started).toEqual(['run_0/0']);
  expect(events).toMatchObject([
    { type: 'run.handler_started', data: { runId: 'run_before', workflowId: 'notify' } },
  ]);
});

describe('the check for due tasks', () => {
  test('writes only if a task is due', async () => {
    const { handlers, clock, deps } = endTasks({ failure: { workflow: 'notify' }, runs: 0 });
    const claim = vi.spyOn(deps.tasks, 'claim');
    const nextDue = vi.spyOn(deps.tasks, 'nextDue');
    handlers.start();
    for (let checks = 1; checks <= 3; checks++) {
      await expect.poll(() => nextDue.mock.calls.length).toBe(checks);
      await new Promise(setImmediate);
      clock.advance(1000);
    }
    expect(claim).not.toHaveBeenCalled();
  });

  test('follows the end of a run only if the end has handlers', async () => {
    const { handlers, deps } = endTasks({ failure: { workflow: 'notify' }, runs: 0 });
    const nextDue = vi.spyOn(deps.tasks, 'nextDue');
    handlers.start();
    await expect.poll(() => nextDue.mock.calls.length).toBe(1);
    await new Promise(setImmediate);
    const endTasksJson = '{"failed":[0],"timed_out":[0]}';
    handlers.ended({ endTasks: null, status: 'failed' });
    handlers.ended({ endTasks: endTasksJson, status: 'succeeded' });
    expect(nextDue).toHaveBeenCalledTimes(1);
    handlers.ended({ endTasks: endTasksJson, status: 'timed_out' });
    expect(nextDue).toHaveBeenCalledTimes(2);
  });

  test('logs a failure and tries again in a second', async () => {
    const { handlers, clock, deps, logs, tasks } = endTasks({ failure: { workflow: 'notify' } });
    vi.spyOn(deps.tasks, 'nextDue').mockRejectedValueOnce(new Error('disk full'));
    handlers.start();
    const message =
      'Handlers of ended runs could not be looked up; the next attempt is in a second: disk full';
    await expect.poll(() => logs.lines).toMatchObject([{ level: 'error', message }]);
    clock.advance(1000);
    await expect.poll(() => tasks.size).toBe(0);
  });
});

test('handlers of a run read it once and parse its values once', async () => {
  const { handlers, deps, sent, tasks } = endTasks({
    failure: ['1', '2', '3'].map((n) => ({
      message: { type: 'order.failed', data: cel(`input.order + ${n}`) },
    })),
    run: { input: '{"order":70}' },
  });
  const find = vi.spyOn(deps.runs, 'find');
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  handlers.start();
  await expect.poll(() => tasks.size).toBe(0);
  expect(sent.map(({ data }) => data)).toEqual([71, 72, 73]);
  expect(find).toHaveBeenCalledTimes(1);
  expect(parse.mock.calls.filter(([text]) => text === '{"order":70}')).toHaveLength(1);
});

test('a started run needs no other write, because its insert deletes the task', async () => {
  const { handlers, tasks, deps, started } = endTasks({ failure: { workflow: 'notify' } });
  const finish = vi.spyOn(deps.tasks, 'finish');
  handlers.start();
  await expect.poll(() => tasks.size).toBe(0);
  await handlers.stop();
  expect(started).toEqual(['run_0/0']);
  expect(finish).not.toHaveBeenCalled();
});
