import { expect, test } from 'vitest';
import { HEADERS, listAudit } from '../../../../src/contracts/index.ts';
import { MEMBER_TOKEN } from '../../../support/gateway.ts';
import { errorIn, type McpPlatform, startMcp } from '../../../support/mcp.ts';
import { messageOf, post, toolCall } from '../../../support/mcp-messages.ts';

const TIMEOUT = { timeout: 60_000 };
const mcp = { expose: true, description: 'Ships an order.' };
const PROJECT = {
  manifest: {
    commands: [
      { id: 'ship', handler: 'shop.js#ship', mcp: { ...mcp, name: 'ship' } },
      { id: 'busy', handler: 'shop.js#busy', mcp: { ...mcp, name: 'busy' } },
    ],
  },
  code: `
import { defineCommand, fail, ok } from 'svc-platform/sdk';
export const ship = defineCommand(async (ctx, { order }) => (order === 'lost' ? fail('LOST', 'lost') : ok(order)));
export const busy = defineCommand(async () => fail('RATE_LIMIT_EXCEEDED', 'the shop is busy'));
`,
};

/** Calls a tool in a trace of its own. Returns the code of its error, or "ok". */
async function call({ gateway }: McpPlatform, name: string, input: object, traceId: string, token?: string) {
  const sent = toolCall(name, input);
  const { result } = await messageOf(await post(gateway.url, sent, token, { [HEADERS.traceId]: traceId }));
  return result.isError ? errorIn(result).error.code : 'ok';
}

test('every call is recorded with its caller, tool, arguments, outcome and trace', TIMEOUT, async () => {
  const platform = await startMcp({ project: PROJECT });
  const trace = (end: number) => `0af7651916cd43dd8448eb211c80319${end}`;
  const calls: Array<[tool: string, input: object, code: string, status: number, token?: string]> = [
    ['ship', { order: 'o-1' }, 'ok', 200],
    ['ship', { order: 'o-1' }, 'ok', 200],
    ['ship', { order: 'o-2' }, 'ok', 200],
    ['ship', { order: 'lost' }, 'EXECUTION_ERROR', 500],
    // The command ran, so its own limit does not keep the call out of the log.
    ['busy', {}, 'RATE_LIMIT_EXCEEDED', 429],
    ['run_show', { runId: 'none' }, 'WORKFLOW_RUN_NOT_FOUND', 404],
    ['run_show', { runId: 'none', more: 1 }, 'VALIDATION_ERROR', 400],
    ['run_cancel', { runId: 'none' }, 'FORBIDDEN', 403, MEMBER_TOKEN],
  ];
  for (const [index, [tool, input, code, , token]] of calls.entries())
    expect([tool, await call(platform, tool, input, trace(index), token)]).toEqual([tool, code]);
  const { items } = await platform.gateway.call(listAudit, { query: { action: 'mcp.call' } });
  const entries = items.toReversed();
  expect(entries).toMatchObject(
    calls.map(([tool, , , status, token], index) => ({
      ...{ actor: token ? 'member' : 'operator', namespaceId: 'default' },
      ...{ object: `tool:${tool}`, status, outcome: status < 400 ? 'succeeded' : 'failed' },
      ...{ traceId: trace(index), digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })),
  );
  // The digest tells arguments apart, and hides them.
  const digests = entries.map(({ digest }) => digest);
  expect(digests[0]).toBe(digests[1]);
  expect(new Set(digests).size).toBe(calls.length - 1);
  expect(JSON.stringify(entries)).not.toContain('o-1');
});

test('calls above the limits are refused before they run, and leave no entry', TIMEOUT, async () => {
  const platform = await startMcp({
    project: PROJECT,
    config: { gateway: { mcp: { callsPerMinute: 2 } } },
  });
  const codes: string[] = [];
  for (let count = 0; count < 4; count++)
    codes.push(await call(platform, 'ship', { order: count }, `0af7651916cd43dd8448eb211c80319${count}`));
  expect(codes).toEqual(['ok', 'ok', 'RATE_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED']);
  const { items } = await platform.gateway.call(listAudit, { query: { action: 'mcp.call' } });
  expect(items.map(({ traceId }) => traceId.at(-1))).toEqual(['1', '0']);
});
