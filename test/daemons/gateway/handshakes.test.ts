import { expect, test } from 'vitest';
import { exchangeBytes } from './support/raw-http.ts';
import { CI_TOKEN, startGateway } from './support/start-gateway.ts';

const HANDSHAKE = [
  'host: localhost',
  `authorization: Bearer ${CI_TOKEN}`,
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
];

const UPGRADE_REQUIRED =
  /^HTTP\/1\.1 426 .*upgrade: websocket.*sec-websocket-version: 13.*"code":"UPGRADE_REQUIRED"/is;

test.each([
  ['HTTP/1.0', '1.0', ['sec-websocket-version: 13']],
  ['an older version', '1.1', ['sec-websocket-version: 12']],
  ['a newer version', '1.1', ['sec-websocket-version: 14']],
  ['two versions', '1.1', ['sec-websocket-version: 13', 'sec-websocket-version: 13']],
  ['no version', '1.1', []],
])('a handshake with %s is 426 and names version 13 on every upgrade route', async (_name, http, version) => {
  const gateway = await startGateway();
  for (const path of ['/hosts/connect', '/api/v1/live']) {
    const lines = [`GET ${path} HTTP/${http}`, ...HANDSHAKE, ...version];
    expect(await exchangeBytes(gateway, `${lines.join('\r\n')}\r\n\r\n`), path).toMatch(UPGRADE_REQUIRED);
  }
  // The gateway itself reads the health of services that start.
  expect(gateway.upstream.seen.filter(({ url }) => url !== '/health')).toEqual([]);
});
