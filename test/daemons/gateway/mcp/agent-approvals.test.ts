import { expect, test } from 'vitest';
import {
  createClientCredentials,
  decideApproval,
  exchangeToken,
  grantRole,
  RunId,
} from '../../../../src/contracts/index.ts';
import { MEMBER_TOKEN, type TestGateway } from '../../../support/gateway.ts';
import { callTool, type McpPlatform, refusedTool, startMcp } from '../../../support/mcp.ts';
import { answering, modernClient, request, startTask } from '../../../support/mcp-tasks.ts';

const TIMEOUT = { timeout: 60_000 };
const approval = (id: string, input: object) => ({
  ...{ id, mcp: { expose: true } },
  jobs: { main: { steps: [{ id: 'ask', uses: 'approval', with: input }] } },
});
const WORKFLOWS = {
  ship: approval('ship', { message: 'Ship?' }),
  pay: approval('pay', { approvers: { roles: ['admin'] } }),
};
const AGENT_SCOPES = ['mcp:workflow_ship', 'mcp:workflow_pay', 'mcp:run_wait', 'mcp:approval_answer'];

const start = () => startMcp({ project: { workflows: WORKFLOWS } });

/** Returns the token of a client with these scopes and, unless it is null, this role. */
async function agentToken(gateway: TestGateway, scopes: string[], role: string | null): Promise<string> {
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, {
    body: { name: 'agent', scopes } as never,
  });
  if (role !== null)
    await gateway.call(grantRole, {
      body: { subject: `client:${clientId}`, role, namespaceId: 'default' } as never,
    });
  const body = { clientId, clientSecret } as never;
  return (await gateway.call(exchangeToken, { body })).accessToken;
}

/** Returns whether the run still waits for its approval. */
async function waits({ connect }: McpPlatform, runId: string): Promise<boolean> {
  const { run } = await callTool(await connect(), 'run_show', { runId });
  return run.status === 'waiting';
}

const status = async (client: ReturnType<typeof modernClient>, taskId: string) =>
  (await client.request('tasks/get', { taskId })).status;

test('an agent with an allow-list of tools cannot approve its own run on any path', TIMEOUT, async () => {
  const platform = await start();
  const { gateway, connect } = platform;
  const token = await agentToken(gateway, AGENT_SCOPES, 'admin');
  const agent = modernClient(gateway.url, token);
  const { taskId } = await agent.request('tools/call', { name: 'workflow_ship', arguments: {} });
  await expect.poll(() => waits(platform, taskId), { timeout: 20_000 }).toBe(true);
  // The client is not asked, although it says that it shows forms.
  expect(await status(agent, taskId)).toBe('working');
  const inputResponses = { 'main.ask#1': { action: 'accept', content: {} } };
  await expect(agent.request('tasks/update', { taskId, inputResponses })).rejects.toMatchObject({
    cause: { code: -32602, data: { code: 'FORBIDDEN', details: { neededScope: 'mcp:elicitation' } } },
  });
  const client = await connect(token);
  expect(
    await refusedTool(client, 'approval_answer', { runId: taskId, stepId: 'main.ask', approved: true }),
  ).toMatchObject({ code: 'FORBIDDEN', details: { reason: 'agents' } });
  const params = { runId: RunId.parse(taskId), stepId: 'main.ask' };
  await expect(
    gateway.call(decideApproval, { params, body: { approved: true } }, token),
  ).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
  // Headers of clients do not reach the services.
  await expect(
    gateway.call(decideApproval, { params, body: { approved: true } }, token, { 'x-svc-via': 'elicitation' }),
  ).rejects.toMatchObject({ code: 'FORBIDDEN' });
  expect(await waits(platform, taskId)).toBe(true);
});

test('a question to one caller cannot be answered by another, nor with a forged id', TIMEOUT, async () => {
  const platform = await start();
  const { gateway, connect } = platform;
  await gateway.call(grantRole, {
    body: { subject: 'host:member', role: 'admin', namespaceId: 'default' } as never,
  });
  const asked: string[] = [];
  const answer = (token: string, id: string) =>
    fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } }),
    });
  const owner = await connect(undefined, 'legacy', {
    ...answering([]),
    prepare: (client) =>
      client.setRequestHandler('elicitation/create', async (_, { mcpReq }) => {
        asked.push(String(mcpReq.id));
        return { action: 'cancel' };
      }),
  });
  const { taskId } = await startTask(owner, 'workflow_ship');
  const result = request(owner, 'tasks/result', { taskId });
  await expect.poll(() => asked.length, { timeout: 20_000 }).toBe(1);
  const [id] = asked as [string];
  const [prefix, text, signature] = id.split('.');
  const other = Buffer.from(JSON.stringify([taskId, 'main.ask#1', 'x'])).toString('base64url');
  expect((await answer(MEMBER_TOKEN, id)).status).toBe(202);
  expect((await answer('test-admin-token', `${prefix}.${other}.${signature}`)).status).toBe(202);
  expect((await answer('test-admin-token', `${prefix}.${text}`)).status).toBe(202);
  expect(await waits(platform, taskId)).toBe(true);
  // The answer to the question itself counts, also when the stream is long gone.
  expect((await answer('test-admin-token', id)).status).toBe(202);
  expect((await result).structuredContent.status).toBe('succeeded');
});

test('the person at the client needs the role of the approver, given explicitly', TIMEOUT, async () => {
  const platform = await start();
  const { gateway } = platform;
  const begin = async (client: ReturnType<typeof modernClient>, name: string): Promise<string> => {
    const { taskId } = await client.request('tools/call', { name, arguments: {} });
    await expect.poll(() => waits(platform, taskId), { timeout: 20_000 }).toBe(true);
    return taskId;
  };
  // The member has no role, and therefore all rights elsewhere.
  const member = modernClient(gateway.url, MEMBER_TOKEN);
  expect(await status(member, await begin(member, 'workflow_ship'))).toBe('working');
  const scopes = [...AGENT_SCOPES, 'mcp:elicitation'];
  const editor = modernClient(gateway.url, await agentToken(gateway, scopes, 'editor'));
  expect(await status(editor, await begin(editor, 'workflow_pay'))).toBe('working');
  expect(await status(editor, await begin(editor, 'workflow_ship'))).toBe('input_required');
  const admin = modernClient(gateway.url, await agentToken(gateway, scopes, 'admin'));
  const taskId = await begin(admin, 'workflow_pay');
  const { inputRequests } = await admin.request('tasks/get', { taskId });
  const inputResponses = { [Object.keys(inputRequests)[0]!]: { action: 'accept', content: {} } };
  await admin.request('tasks/update', { taskId, inputResponses });
  await expect.poll(() => status(admin, taskId), { timeout: 20_000 }).toBe('completed');
});

test.each(['legacy', { pin: '2026-07-28' }] as const)(
  'run_wait asks the person at a client of the revision %j without tasks',
  TIMEOUT,
  async (era) => {
    const { connect } = await start();
    const asked: unknown[] = [];
    const client = await connect(undefined, era, answering([{ action: 'accept', content: {} }], asked));
    const plain = await connect(undefined, era);
    const { runId } = await callTool(client, 'workflow_ship');
    await expect
      .poll(async () => (await callTool(plain, 'run_wait', { runId })).needsAnswer, { timeout: 20_000 })
      .toBe(true);
    await client.callTool({ name: 'run_wait', arguments: { runId } });
    expect(asked).toMatchObject([{ message: expect.stringMatching(/^Ship\?/) }]);
    const { done, run } = await callTool(client, 'run_wait', { runId });
    expect({ done, status: run.status }).toEqual({ done: true, status: 'succeeded' });
    expect(asked).toHaveLength(1);
  },
);
