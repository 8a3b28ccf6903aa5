import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../src/kit/files/paths.ts';
import { writeFiles } from './daemons/marketplace/support.ts';
import { spawnCli } from './support/cli.ts';
import { tempDir } from './support/daemon.ts';
import { connectTo } from './support/mcp.ts';
import { McpTranscript } from './support/mcp-transcript.ts';
import { FREE_PORTS } from './support/ports.ts';
import { filesOf, Transcript } from './support/transcript.ts';
import { userEnvironment } from './support/user-environment.ts';

test('docs/quickstart-agent.md: an agent repairs a delivery, and its task outlives a restart', {
  timeout: 300_000,
}, async () => {
  const page = await readFile(join(packageRoot, 'docs/quickstart-agent.md'), 'utf8');
  const files = filesOf(page);
  expect(files).toHaveLength(4);
  const folder = await writeFiles(await tempDir(), {
    ...Object.fromEntries(files),
    'svc.config.json': { ...FREE_PORTS, plugins: ['./plugins/*'] },
  });
  const script = new Transcript(page, folder, { SHOP_KEY: 'key-of-the-shop' });
  const messages = new McpTranscript(page);
  onTestFinished(async () => void (await spawnCli(['down'], { cwd: folder, env: userEnvironment() })));

  await script.next('up');
  const { url, secret } = await script.next('webhooks provision');
  Object.assign(script.env, { WEBHOOK_URL: url, WEBHOOK_SECRET: secret });
  await script.curl().catch(() => {});
  const agent = await script.next('clients create');
  Object.assign(script.env, { CLIENT_ID: agent.clientId, CLIENT_HOST_ID: agent.hostId });
  await script.next('roles grant');
  const { token } = await script.next('tokens mint');
  const connect = () => {
    const capabilities = { elicitation: { form: {} } };
    const prepare = messages.prepare.bind(messages);
    return gatewayUrl(folder).then((at) => connectTo(at, token, 'legacy', { capabilities, prepare }));
  };

  const first = await connect();
  await messages.next(first, 'tools/call');
  await messages.next(first, 'tools/call');
  await script.next('secrets set');
  await messages.next(first, 'tools/call');
  await messages.next(first, 'tools/call');
  await messages.next(first, 'tools/call');
  await messages.next(first, 'tasks/get');
  await script.next('down');
  await script.next('up');
  const second = await connect();
  await messages.next(second, 'tasks/result');
  const { items } = await script.next('audit list');
  expect(items).toMatchObject([{ action: 'run.approve', actor: agent.hostId, outcome: 'succeeded' }]);
  expect([script.left, messages.left]).toEqual([0, 0]);
});

async function gatewayUrl(folder: string): Promise<string> {
  const { json } = await spawnCli(['status', '--json'], { cwd: folder, env: userEnvironment() });
  return json.result.services.find(({ name }: { name: string }) => name === 'gateway').url;
}
