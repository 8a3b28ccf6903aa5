import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { HEADERS, listClients, listSources } from '../../src/contracts/index.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../support/gateway.ts';

/** Starts a proxy in front of the gateway. It answers 503 to the calls in `refused`, such as `POST /api/v1/tokens`. */
async function refusingProxy(gatewayUrl: string, refused: readonly string[]): Promise<string> {
  const server = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    if (refused.some((call) => `${method} ${url}`.startsWith(call))) {
      const error = { code: 'SERVICE_UNAVAILABLE', message: 'The gateway is stopping.', details: {} };
      response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    const forwarded = request(new URL(url!, gatewayUrl), { method, headers }, (reply) => {
      response.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(response);
    });
    incoming.pipe(forwarded);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function createInbox(refused: readonly string[]) {
  const gateway = await startGateway();
  const url = await refusingProxy(gateway.url, refused);
  const flags = ['--namespace', 'acme', '--url', url];
  const run = async (args: readonly string[]) =>
    runCli([...args, '--token', ADMIN_TOKEN], { cwd: await tempDir() });
  const { code, stderr } = await run(['agent-inbox', 'orders', ...flags]);
  const left = async () => {
    const sources = await gateway.call(listSources, { query: {} }, ADMIN_TOKEN, {
      [HEADERS.namespace]: 'acme',
    });
    const clients = await gateway.call(listClients, { query: {} });
    return [
      ...sources.items.map(({ name }) => `source ${name}`),
      ...clients.items
        .filter(({ name, valid }) => name === 'agent-inbox orders' && valid)
        .map(({ clientId }) => `client ${clientId}`),
    ];
  };
  return { code, stderr, flags: flags.join(' '), run, left };
}

test('an inbox whose token cannot be created leaves no source and no client', async () => {
  const { code, stderr, left } = await createInbox(['POST /api/v1/tokens']);
  expect(code).toBe(1);
  expect(await left()).toEqual([]);
  expect(stderr).toContain('The gateway is stopping.');
  expect(stderr).not.toContain('could not be removed');
});

test('an inbox that cannot be cleaned up names the commands that do it', async () => {
  const refused = ['POST /api/v1/tokens', 'DELETE '];
  const { stderr, flags, run, left } = await createInbox(refused);
  const [source, client] = await left();
  expect(source).toBe('source orders');
  const commands = [...stderr.matchAll(/Remove it with: svc (.*)/g)].map(([, command]) => command!);
  expect(commands).toEqual([`clients revoke ${client?.slice(7)} ${flags}`, `sources delete orders ${flags}`]);
  refused.length = 0;
  for (const command of commands) expect(await run(command.split(' '))).toMatchObject({ code: 0 });
  expect(await left()).toEqual([]);
});
