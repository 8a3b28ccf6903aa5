import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../src/kit/files/paths.ts';
import { writeFiles } from './daemons/marketplace/support.ts';
import { spawnCli } from './support/cli.ts';
import { tempDir } from './support/daemon.ts';
import { callTool, refusedTool } from './support/mcp.ts';
import { FREE_PORTS } from './support/ports.ts';
import { Transcript } from './support/transcript.ts';
import { userEnvironment } from './support/user-environment.ts';

interface Server {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** Starts the agent by the printed configuration, as an MCP client does. */
async function startAgent({ command, args, env }: Server, cwd: string, token: string) {
  expect(command).toBe('svc');
  const transport = new StdioClientTransport({
    command: join(packageRoot, 'bin/svc'),
    args,
    cwd,
    env: { ...(userEnvironment() as Record<string, string>), SVC_TOKEN: token },
    stderr: 'inherit',
  });
  expect(env).toEqual({ SVC_TOKEN: '$' + '{SVC_TOKEN}' });
  const client = new Client({ name: 'agent', version: '1.0.0' });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, kill: () => process.kill(transport.pid!, 'SIGKILL') };
}

test('docs/agent-inbox.md: an agent that dies after events_wait loses nothing', {
  timeout: 300_000,
}, async () => {
  const page = await readFile(join(packageRoot, 'docs/agent-inbox.md'), 'utf8');
  const folder = await writeFiles(await tempDir(), { 'svc.config.json': { ...FREE_PORTS } });
  const script = new Transcript(page, folder, {});
  onTestFinished(async () => void (await spawnCli(['down'], { cwd: folder, env: userEnvironment() })));
  await script.next('up');
  const { url, config, token, scopes, clientId } = await script.next('agent-inbox');
  expect(scopes).toEqual(['mcp:events_wait', 'mcp:events_ack', 'mcp:events_nack', 'queue:orders']);
  expect(JSON.stringify(config)).not.toContain(token);
  script.env.INBOX_URL = url;
  await script.curl();

  const first = await startAgent(config.mcpServers.svc, folder, token);
  const { tools } = await first.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['events_ack', 'events_nack', 'events_wait']);
  const wait = { queue: 'orders', leaseMs: 2000, waitMs: 10_000 };
  const taken = await callTool(first.client, 'events_wait', wait);
  expect(taken.items).toMatchObject([{ attempt: 1, body: { order: 1 } }]);
  first.kill();

  const second = await startAgent(config.mcpServers.svc, folder, token);
  const again = await callTool(second.client, 'events_wait', { ...wait, leaseMs: 60_000 });
  expect(again.items).toMatchObject([{ id: taken.items[0].id, attempt: 2, body: { order: 1 } }]);
  const { leaseId } = again.items[0];
  await callTool(second.client, 'events_ack', { queue: 'orders', leaseIds: [leaseId] });
  expect((await callTool(second.client, 'events_wait', { ...wait, waitMs: 0 })).items).toEqual([]);
  // The token opens nothing else.
  expect(await refusedTool(second.client, 'events_wait', { queue: 'other', waitMs: 0 })).toMatchObject({
    code: 'FORBIDDEN',
  });
  expect(await refusedTool(second.client, 'runs_list')).toMatchObject({ code: 'FORBIDDEN' });
  await script.next('queues show');
  expect((await script.next('queues dead')).items).toEqual([]);
  // An item that is leased at the removal.
  const svc = async (...args: string[]) =>
    (await spawnCli([...args, '--json'], { cwd: folder, env: userEnvironment() })).json.result;
  await svc('queues', 'put', 'orders', '{"order": 2}');
  expect((await callTool(second.client, 'events_wait', { ...wait, leaseMs: 20_000 })).items).toHaveLength(1);
  script.env.CLIENT_ID = clientId;
  await script.next('clients revoke');
  await script.next('sources delete orders');
  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(404);
  expect(await svc('queues', 'purge', 'orders', 'waiting', '--yes')).toEqual({ deleted: 0 });
  const leased = async () => (await svc('queues', 'show', 'orders')).leased;
  expect(await leased()).toBe(1);
  await expect.poll(leased, { timeout: 60_000, interval: 500 }).toBe(0);
  await script.next('queues show');
  expect(await script.next('queues purge orders waiting')).toEqual({ deleted: 1 });
  expect(await script.next('queues purge orders dead')).toEqual({ deleted: 0 });
  expect(script.left).toBe(0);
});
