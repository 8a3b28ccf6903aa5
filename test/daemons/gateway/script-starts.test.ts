import { expect, test } from 'vitest';
import { grantRole, HEADERS, listRuns, rerunRun, rerunRuns, startRun } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { rest } from '../../../src/daemons/rest/index.ts';
import { serviceKey } from '../../../src/kit/security/keys.ts';
import { startTestDaemon, TEST_KEYS, TEST_OPERATOR } from '../../support/daemon.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, startGateway } from '../../support/gateway.ts';
import { connectTo, refusedTool } from '../../support/mcp.ts';
import { startWorkflow } from '../workflow/support/workflow.ts';

const tokenOf = (hostId: string) => `a-static-token-of-${hostId}`;
const TOKENS = Object.fromEntries(
  ['local-admin', 'watcher', 'boss', 'half', 'chief'].map((hostId) => [
    tokenOf(hostId),
    { hostId, namespaceId: 'default' },
  ]),
);
/** Headers of a client that pretends to be the gateway. */
const FORGED = { [HEADERS.administrator]: 'true', x_svc_administrator: 'true', [HEADERS.role]: 'admin' };
const BODY = { definition: { id: 'script', jobs: { main: { steps: [{ run: 'true' }] } } } };

/** Returns the status of a start by an inline definition with a script. */
async function started(url: string, token: string | null, headers: Record<string, string> = {}) {
  const response = await fetch(new URL(startRun.path, url), {
    method: 'POST',
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(BODY),
  });
  const { error } = (await response.json()) as { error?: { message: string } };
  if (response.status === 403)
    expect(error!.message).toMatch(/Only administrators of the platform|the role "editor"/);
  return response.status;
}

async function startPlatform() {
  const workflow = await startWorkflow();
  const api = await startTestDaemon(rest, { peers: createPeers({ workflow: workflow.url }) });
  const open = async (peers: Parameters<typeof createPeers>[0]) =>
    startGateway({
      peers: createPeers(peers),
      operator: { ...TEST_OPERATOR, hostId: 'root' },
      config: {
        gateway: {
          admins: ['operator', 'watcher', 'boss', 'half', 'chief'],
          staticTokens: {
            ...TOKENS,
            [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' },
            [MEMBER_TOKEN]: { hostId: 'member', namespaceId: 'default' },
          },
        },
      },
    });
  const gateway = await open({ rest: api.url, workflow: workflow.url });
  const give = (hostId: string, role: 'viewer' | 'editor' | 'admin', namespaceId: string) =>
    gateway.call(grantRole, { body: { subject: `host:${hostId}`, role, namespaceId } as never });
  await give('local-admin', 'admin', 'default');
  await give('boss', 'admin', 'default');
  await give('watcher', 'editor', '*');
  await give('half', 'viewer', '*');
  await give('half', 'admin', 'default');
  await give('chief', 'admin', '*');
  await give('chief', 'viewer', 'default');
  return { workflow, api, gateway, open };
}

test('scripts in inline definitions are started by administrators of the platform alone', async () => {
  const { workflow, api, gateway, open } = await startPlatform();
  const throughRest = await open({ rest: api.url, workflow: api.url });
  for (const { url } of [gateway, throughRest]) {
    expect(await started(url, ADMIN_TOKEN)).toBe(202);
    expect(await started(url, MEMBER_TOKEN)).toBe(403);
    expect(await started(url, MEMBER_TOKEN, FORGED)).toBe(403);
  }
  expect(await started(gateway.url, tokenOf('chief'))).toBe(202);
  // An administrator of one namespace, one whom roles restrict to a namespace, one with a lower role, and one with a
  // lower role for all namespaces than for this one.
  for (const hostId of ['local-admin', 'boss', 'watcher', 'half'])
    expect([hostId, await started(gateway.url, tokenOf(hostId), FORGED)]).toEqual([hostId, 403]);

  for (const { url } of [workflow, api]) {
    expect(await started(url, null, FORGED)).toBe(403);
    expect(await started(url, null, { ...FORGED, [HEADERS.serviceKey]: 'wrong' })).toBe(401);
    const key = { [HEADERS.serviceKey]: serviceKey(TEST_KEYS.internalSecret) };
    expect(await started(url, null, { ...key, [HEADERS.role]: 'admin' })).toBe(403);
  }

  const { run } = await gateway.call(startRun, { body: BODY } as never);
  await workflow.until(run.id, 'succeeded');
  const agent = await connectTo(gateway.url, ADMIN_TOKEN);
  expect(await refusedTool(agent, 'run_rerun', { runId: run.id })).toMatchObject({ code: 'FORBIDDEN' });
});

test('reruns of scripts in inline definitions are for administrators of the platform, also in bulk', async () => {
  const { workflow, api, gateway, open } = await startPlatform();
  const throughRest = await open({ rest: api.url, workflow: api.url });
  const { run } = await gateway.call(startRun, { body: BODY } as never);
  await workflow.until(run.id, 'succeeded');
  const one = { params: { runId: run.id }, body: {} } as never;
  const many = { body: { runIds: [run.id] } } as never;
  await expect(throughRest.call(rerunRun, one, MEMBER_TOKEN, FORGED)).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
  for (const token of [MEMBER_TOKEN, ...['local-admin', 'boss', 'half'].map(tokenOf)]) {
    await expect(gateway.call(rerunRun, one, token, FORGED)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(await gateway.call(rerunRuns, many, token, FORGED)).toMatchObject({
      items: [],
      refused: [
        {
          runId: run.id,
          error: {
            code: 'FORBIDDEN',
            message: expect.stringContaining('Only administrators of the platform'),
          },
        },
      ],
    });
  }
  expect((await workflow.call(listRuns, {})).items).toHaveLength(1);

  const again = await gateway.call(rerunRun, one);
  await workflow.until(again.run.id, 'succeeded');
  const { items, refused } = await gateway.call(rerunRuns, many);
  expect(refused).toEqual([]);
  await workflow.until(items[0]!.runId, 'succeeded');
});
