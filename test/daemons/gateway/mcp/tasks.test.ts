import { describe, expect, test } from 'vitest';
import { decideApproval, listAudit } from '../../../../src/contracts/index.ts';
import { MEMBER_TOKEN, OTHER_TOKEN } from '../../../support/gateway.ts';
import { callTool, type McpPlatform, startMcp } from '../../../support/mcp.ts';
import { answering, modernClient, request, startTask } from '../../../support/mcp-tasks.ts';
import { cel } from '../../workflow/support/workflow.ts';

const TIMEOUT = { timeout: 60_000 };
const exposed = (id: string, steps: object[], more: object = {}) => ({
  ...{ id, mcp: { expose: true }, jobs: { main: { steps } }, ...more },
});
const FORM = {
  type: 'object',
  properties: {
    amount: { title: 'Amount', type: 'number', maximum: 500 },
    reason: { enum: ['damaged', 'late'] },
    items: { type: 'array', items: { type: 'object' } },
  },
  required: ['amount'],
};
const WORKFLOWS = {
  quick: exposed('quick', [{ id: 'set', uses: 'set', with: { text: cel('input.text') } }], {
    outputs: { text: cel('jobs.main.outputs.text') },
  }),
  slow: exposed('slow', [{ id: 'nap', uses: 'wait', with: { ms: 600_000 } }]),
  broken: exposed('broken', [{ id: 'wrong', uses: 'set', with: { text: cel('input.none.at.all') } }]),
  refund: exposed('refund', [
    { id: 'ask', uses: 'approval', with: { message: 'Refund?', form: FORM } },
    { id: 'keep', uses: 'set', with: { data: cel('steps.ask.output.data') } },
  ]),
  boss: exposed('boss', [{ id: 'ask', uses: 'approval', with: { approvers: { roles: ['admin'] } } }]),
  paid: exposed('paid', [{ id: 'wait', uses: 'signal', with: { name: 'paid' } }]),
  auto: exposed('auto', [
    { id: 'ask', uses: 'approval', with: { agents: true } },
    { id: 'wait', uses: 'signal', with: { name: 'paid', agents: true } },
  ]),
};
WORKFLOWS.quick.jobs.main = {
  ...WORKFLOWS.quick.jobs.main,
  outputs: { text: cel('steps.set.output.text') },
} as never;

const start = () => startMcp({ project: { workflows: WORKFLOWS } });

/** Polls a task of the revision 2026-07-28 until it has the status, and returns it. */
async function until(client: ReturnType<typeof modernClient>, taskId: string, status: string) {
  await expect
    .poll(async () => (await client.request('tasks/get', { taskId })).status, { timeout: 20_000 })
    .toBe(status);
  return client.request('tasks/get', { taskId });
}

describe('tasks of the revision 2025-11-25', () => {
  test(
    'a tool call becomes a task at once, and tasks/result waits for the result of the run',
    TIMEOUT,
    async () => {
      const { connect } = await start();
      const client = await connect();
      const { tools } = await client.listTools();
      const supports = tools.flatMap(({ name, execution }) => (execution?.taskSupport ? [name] : []));
      expect(supports).toEqual(expect.arrayContaining(['workflow_quick', 'workflow_slow']));
      expect(supports).not.toContain('run_start');
      const task = await startTask(client, 'workflow_quick', { text: 'hi' }, 120_000);
      expect(task).toMatchObject({ status: 'working', ttl: 120_000, pollInterval: 1000 });
      const result = await request(client, 'tasks/result', { taskId: task.taskId });
      expect(result).toMatchObject({
        structuredContent: { runId: task.taskId, status: 'succeeded', output: { text: 'hi' } },
        _meta: {
          'io.modelcontextprotocol/related-task': { taskId: task.taskId },
          'svc-platform/untrusted': true,
        },
      });
      expect(await request(client, 'tasks/get', { taskId: task.taskId })).toMatchObject({
        status: 'completed',
      });
    },
  );

  test('a failed run is a failed task whose result is an error', TIMEOUT, async () => {
    const client = await (await start()).connect();
    const { taskId } = await startTask(client, 'workflow_broken');
    const result = await request(client, 'tasks/result', { taskId });
    expect(result).toMatchObject({ isError: true, structuredContent: { status: 'failed', error: {} } });
    expect(await request(client, 'tasks/get', { taskId })).toMatchObject({ status: 'failed' });
  });

  test('tools without runs are no tasks, and invalid inputs start none', TIMEOUT, async () => {
    const { connect } = await start();
    const client = await connect();
    await expect(startTask(client, 'runs_list')).rejects.toMatchObject({ code: -32601 });
    expect((await request(client, 'tasks/list', {})).tasks).toEqual([]);
  });

  test('tasks are listed in pages, newest first', TIMEOUT, async () => {
    const client = await (await start()).connect();
    const ids: string[] = [];
    for (let i = 0; i < 52; i++)
      ids.unshift((await startTask(client, 'workflow_quick', { text: `${i}` })).taskId);
    await callTool(client, 'workflow_quick', { text: 'no task' });
    const first = await request(client, 'tasks/list', {});
    const second = await request(client, 'tasks/list', { cursor: first.nextCursor });
    expect([...first.tasks, ...second.tasks].map(({ taskId }) => taskId)).toEqual(ids);
    expect(second.nextCursor).toBeUndefined();
    await expect(request(client, 'tasks/list', { cursor: 'wrong' })).rejects.toMatchObject({ code: -32602 });
  });

  test('tasks/cancel cancels the run, once', TIMEOUT, async () => {
    const { connect } = await start();
    const client = await connect();
    const { taskId } = await startTask(client, 'workflow_slow');
    expect(await request(client, 'tasks/cancel', { taskId })).toMatchObject({ taskId, status: 'cancelled' });
    expect(await request(client, 'tasks/result', { taskId })).toMatchObject({
      isError: true,
      structuredContent: { status: 'cancelled' },
    });
    expect((await callTool(client, 'run_show', { runId: taskId })).run.status).toBe('cancelled');
    await expect(request(client, 'tasks/cancel', { taskId })).rejects.toMatchObject({ code: -32602 });
  });

  test('a task belongs to its caller, and expires', TIMEOUT, async () => {
    const { connect, gateway } = await start();
    const client = await connect();
    const { taskId } = await startTask(client, 'workflow_slow', {}, 60_000);
    for (const token of [OTHER_TOKEN, MEMBER_TOKEN]) {
      const other = await connect(token);
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
        await expect(request(other, method, { taskId })).rejects.toMatchObject({ code: -32602 });
      expect((await request(other, 'tasks/list', {})).tasks).toEqual([]);
    }
    // Labels are set by callers, so that they prove nothing.
    const { run } = await callTool(client, 'run_show', { runId: taskId });
    const member = await connect(MEMBER_TOKEN);
    await callTool(member, 'run_start', { workflowId: 'slow', labels: run.labels });
    expect((await request(client, 'tasks/list', {})).tasks).toHaveLength(1);
    gateway.clock.advance(60_000);
    await expect(request(client, 'tasks/get', { taskId })).rejects.toMatchObject({ code: -32602 });
  });

  test(
    'a waiting approval asks the person at the client with its form, and tells what was wrong',
    TIMEOUT,
    async () => {
      const { connect, gateway } = await start();
      const asked: unknown[] = [];
      const answers = [
        { action: 'accept', content: { amount: 900 } },
        { action: 'accept', content: { amount: 20, items: '[{"sku": "a"}]' } },
      ];
      const client = await connect(undefined, 'legacy', answering(answers, asked));
      const { taskId } = await startTask(client, 'workflow_refund');
      const result = await request(client, 'tasks/result', { taskId });
      expect(result.structuredContent).toMatchObject({ status: 'succeeded' });
      expect(asked).toMatchObject([
        {
          message: expect.stringMatching(/^Refund\?/),
          requestedSchema: {
            properties: {
              amount: { type: 'number', maximum: 500, title: 'Amount' },
              reason: { type: 'string', enum: ['damaged', 'late'] },
              items: { type: 'string' },
            },
            required: ['amount'],
          },
          _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
        },
        { message: expect.stringMatching(/The last answer was refused: .*amount/) },
      ]);
      const { steps } = await callTool(client, 'run_show', { runId: taskId });
      expect(steps[0].output).toMatchObject({
        ...{
          approved: true,
          by: 'operator',
          via: 'elicitation',
          data: { amount: 20, items: [{ sku: 'a' }] },
        },
      });
      const { items } = await gateway.call(listAudit, { query: {} });
      const entries = items.map(({ action, object, actor, outcome }) => ({ action, object, actor, outcome }));
      const about = { actor: 'operator', outcome: 'succeeded' };
      expect(entries).toContainEqual({ ...about, action: 'mcp.call', object: 'tool:elicitation' });
      expect(entries).toContainEqual({ ...about, action: 'run.approve', object: `run:${taskId}/main.ask` });
    },
  );

  test('a declined approval is refused, a dismissed one stays open', TIMEOUT, async () => {
    const { connect, gateway } = await start();
    const declining = await connect(undefined, 'legacy', answering([{ action: 'decline' }]));
    const first = await startTask(declining, 'workflow_refund');
    expect(await request(declining, 'tasks/result', first)).toMatchObject({ isError: true });
    const asked: unknown[] = [];
    const dismissing = await connect(undefined, 'legacy', answering([{ action: 'cancel' }], asked));
    const { taskId } = await startTask(dismissing, 'workflow_refund');
    const result = request(dismissing, 'tasks/result', { taskId });
    await expect.poll(() => asked.length, { timeout: 20_000 }).toBe(1);
    expect(await request(dismissing, 'tasks/get', { taskId })).toMatchObject({ status: 'input_required' });
    const params = { runId: taskId, stepId: 'main.ask' } as never;
    await gateway.call(decideApproval, { params, body: { approved: true, data: { amount: 1 } } });
    expect((await result).structuredContent.status).toBe('succeeded');
  });

  test('a waiting signal asks for its payload', TIMEOUT, async () => {
    const { connect } = await start();
    const answers = [{ action: 'accept', content: { payload: '{"sum": 3}' } }];
    const client = await connect(undefined, 'legacy', answering(answers));
    const { taskId } = await startTask(client, 'workflow_paid');
    expect((await request(client, 'tasks/result', { taskId })).structuredContent.status).toBe('succeeded');
    const { steps } = await callTool(client, 'run_show', { runId: taskId });
    expect(steps[0].output).toMatchObject({ payload: { sum: 3 }, by: 'operator' });
  });

  test('tasks/result reports progress and status changes', TIMEOUT, async () => {
    const { connect } = await start();
    const client = await connect();
    const statuses: string[] = [];
    client.setNotificationHandler(
      'notifications/tasks/status' as never,
      ({ params }: { params: { status: string } }) => void statuses.push(params.status),
    );
    const { taskId } = await startTask(client, 'workflow_quick', { text: 'x' });
    const progress: number[] = [];
    const onprogress = (one: { progress: number }) => void progress.push(one.progress);
    await request(client, 'tasks/result', { taskId }, { onprogress });
    expect(statuses.at(-1)).toBe('completed');
    expect(progress).toEqual(progress.map((_, index) => index + 1));
    expect(progress.length).toBeGreaterThan(0);
  });
});

test('run_wait waits for the time that was asked for, and reports progress', TIMEOUT, async () => {
  const client = await (await start()).connect();
  const { runId } = await callTool(client, 'workflow_slow');
  const progress: number[] = [];
  const onprogress = (one: { progress: number }) => void progress.push(one.progress);
  const wait = { name: 'run_wait', arguments: { runId, timeoutMs: 1000 } };
  expect(await client.callTool(wait, { onprogress })).toMatchObject({
    structuredContent: { result: { done: false, needsAnswer: false } },
  });
  expect(progress).toEqual([0, 1, 2, 3]);
  const tooLong = { ...wait, arguments: { runId, timeoutMs: 45_001 } };
  expect(await client.callTool(tooLong)).toMatchObject({ isError: true });
});

describe('tasks of the revision 2026-07-28', () => {
  test('clients that declare the extension get tasks, others the id of the run', TIMEOUT, async () => {
    const { gateway } = await start();
    const client = modernClient(gateway.url);
    const plain = modernClient(gateway.url, undefined, {});
    const { capabilities } = await client.request('server/discover');
    expect(capabilities).toMatchObject({ extensions: { 'io.modelcontextprotocol/tasks': {} } });
    expect(capabilities.tasks).toBeUndefined();
    const call = { name: 'workflow_quick', arguments: { text: 'hi' } };
    expect(await plain.request('tools/call', call)).toMatchObject({
      resultType: 'complete',
      structuredContent: { runId: expect.anything() },
    });
    const task = await client.request('tools/call', call);
    expect(task).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 30 * 86_400_000 });
    const done = await until(client, task.taskId, 'completed');
    expect(done).toMatchObject({
      resultType: 'complete',
      result: { structuredContent: { status: 'succeeded', output: { text: 'hi' } } },
    });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId: task.taskId, inputResponses: {} };
      await expect(plain.request(method, params)).rejects.toMatchObject({ cause: { code: -32021 } });
    }
    await expect(client.request('tasks/list')).rejects.toMatchObject({ cause: { code: -32601 } });
    await expect(client.request('tasks/get', { taskId: 'none' })).rejects.toMatchObject({
      cause: { code: -32602 },
    });
  });

  test(
    'a failed run is a completed task with an error, and a cancel is only acknowledged',
    TIMEOUT,
    async () => {
      const { gateway } = await start();
      const client = modernClient(gateway.url);
      const failed = await client.request('tools/call', { name: 'workflow_broken', arguments: {} });
      expect((await until(client, failed.taskId, 'completed')).result).toMatchObject({ isError: true });
      const slow = await client.request('tools/call', { name: 'workflow_slow', arguments: {} });
      for (let i = 0; i < 2; i++) {
        const ack = await client.request('tasks/cancel', { taskId: slow.taskId });
        expect(ack).toMatchObject({ resultType: 'complete' });
        expect(ack.taskId).toBeUndefined();
      }
      await until(client, slow.taskId, 'cancelled');
    },
  );

  test('input_required carries the form of the approval, and tasks/update answers it', TIMEOUT, async () => {
    const { gateway } = await start();
    const client = modernClient(gateway.url);
    const { taskId } = await client.request('tools/call', { name: 'workflow_refund', arguments: {} });
    const { inputRequests } = await until(client, taskId, 'input_required');
    const [key] = Object.keys(inputRequests);
    expect(inputRequests[key!]).toMatchObject({
      method: 'elicitation/create',
      params: { mode: 'form', requestedSchema: { properties: { amount: { type: 'number' } } } },
    });
    const answer = (content: object) =>
      client.request('tasks/update', {
        taskId,
        inputResponses: { unknown: { action: 'accept' }, [key!]: { action: 'accept', content } },
      });
    await expect(answer({ amount: 900 })).rejects.toMatchObject({ cause: { code: -32602 } });
    expect(await answer({ amount: 5 })).toMatchObject({ resultType: 'complete' });
    await until(client, taskId, 'completed');
    // A late answer has no effect.
    expect(await answer({ amount: 6 })).toMatchObject({ resultType: 'complete' });
  });
});

describe('agents and approvals', () => {
  const agentClient = (platform: McpPlatform, token?: string) => platform.connect(token);

  test('an agent cannot approve or send a signal, unless the step allows agents', TIMEOUT, async () => {
    const platform = await start();
    const client = await agentClient(platform);
    for (const [tool, step] of [
      ['workflow_refund', 'main.ask'],
      ['workflow_paid', 'main.wait'],
    ]) {
      const { runId } = await callTool(client, tool!);
      await expect.poll(async () => (await callTool(client, 'run_wait', { runId })).needsAnswer).toBe(true);
      const answer = { runId, stepId: step, approved: true, data: { amount: 1 } };
      await expect(callTool(client, 'approval_answer', answer)).rejects.toThrow(/FORBIDDEN.*agents/);
      expect((await callTool(client, 'run_show', { runId })).run.status).toBe('waiting');
    }
    const { runId } = await callTool(client, 'workflow_auto');
    for (const stepId of ['main.ask', 'main.wait']) {
      await expect
        .poll(async () => (await callTool(client, 'run_wait', { runId })).waitingSteps[0]?.stepId)
        .toBe(stepId);
      await callTool(client, 'approval_answer', { runId, stepId, approved: true });
    }
    await expect
      .poll(async () => (await callTool(client, 'run_wait', { runId })).run.status, { timeout: 20_000 })
      .toBe('succeeded');
  });
});
