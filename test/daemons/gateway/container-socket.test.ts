import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { ContainerSockets } from '../../../src/daemons/gateway/container-sockets.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { requestFor } from '../../plugins/support.ts';
import { tempDir } from '../../support/daemon.ts';
import { exchangeBytes } from './support/raw-http.ts';
import { CI_TOKEN, startGateway } from './support/start-gateway.ts';

const TOKEN = `authorization: Bearer ${CI_TOKEN}`;
const JSON_BODY = 'content-type: application/json';
const EXPECTS = 'expect: 100-continue';

/** The socket that a container of a plugin gets; its token is one that the gateway knows. */
async function start() {
  const gateway = await startGateway();
  const execution = requestFor('h.js#h', { permissions: { platform: { workflows: true } } });
  const socket = await gateway.services.containerSockets.open(execution, CI_TOKEN);
  onTestFinished(() => socket.close());
  return {
    gateway,
    post: (headers: string[], body: string, line = 'POST /api/v1/workflows/runs HTTP/1.1') =>
      exchangeBytes(
        { path: socket.path },
        `${[line, 'host: localhost', 'connection: close', ...headers].join('\r\n')}\r\n\r\n${body}`,
      ),
  };
}

const continues = (answer: string): number => answer.split('HTTP/1.1 100 Continue').length - 1;

test('a refused request gets no 100 Continue', async () => {
  const { gateway, post } = await start();
  const stranger = await post([EXPECTS, JSON_BODY, 'content-length: 5'], '');
  expect(stranger).toMatch(/^HTTP\/1\.1 401 .*"code":"UNAUTHORIZED"/s);
  const large = await post([EXPECTS, TOKEN, JSON_BODY, 'content-length: 99999999999'], '');
  expect(large).toMatch(/^HTTP\/1\.1 413 .*"code":"PAYLOAD_TOO_LARGE"/s);
  const elsewhere = await post(
    [EXPECTS, TOKEN, JSON_BODY, 'content-length: 5'],
    '',
    'POST /api/v1/x HTTP/1.1',
  );
  expect(elsewhere).toMatch(/^HTTP\/1\.1 403 .*"code":"PERMISSION_DENIED"/s);
  expect(gateway.upstream.seen).toEqual([]);
});

test('an accepted request gets one 100 Continue', async () => {
  const { gateway, post } = await start();
  const answer = await post([EXPECTS, TOKEN, JSON_BODY, 'content-length: 2'], '{}');
  expect([continues(answer), gateway.upstream.seen.length]).toEqual([1, 1]);
  expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
});

test.each([
  ['another expectation', ['expect: tea', TOKEN], undefined, 417, 'EXPECTATION_FAILED'],
  ['CONNECT', [TOKEN], 'CONNECT localhost:1 HTTP/1.1', 501, 'NOT_IMPLEMENTED'],
  ['a line that is no HTTP', [TOKEN], 'what is this', 400, 'VALIDATION_ERROR'],
])('%s is refused in the shape of the gateway', async (_what, headers, line, status, code) => {
  const { post } = await start();
  const answer = await post(headers, '', line);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).toContain(`"code":"${code}"`);
});

test('processes that share the port keep the sockets of each other', async () => {
  const dataDir = await tempDir();
  const open = async (number: number) => {
    const deps = { dataDir, random: systemRandom(), logger: silentLogger };
    const sockets = new ContainerSockets({ ...deps, portShare: { number, joins: number > 1 } });
    onTestFinished(() => sockets.close());
    const socket = await sockets.open(requestFor('h.js#h'), CI_TOKEN);
    onTestFinished(() => socket.close());
    return socket.path;
  };
  const paths = [await open(1), await open(2)];
  expect(paths.map((path) => existsSync(path))).toEqual([true, true]);
});
