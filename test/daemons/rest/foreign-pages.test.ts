import { expect, test } from 'vitest';
import { serviceHeaders } from '../../../src/http/index.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { startRest } from './support.ts';

const ORDERS = '/api/v1/plugins/shop/orders?limit=1';

/** The status of a plugin route, called as a browser calls it for a page. */
async function startedWith(config: Record<string, unknown> = {}) {
  const daemon = await startRest({ config });
  const statusOf = async (headers: Record<string, string>) =>
    (await daemon.fetch(ORDERS, { headers })).status;
  return { daemon, statusOf };
}

test('a plugin route refuses cross-site browser requests, also without an Origin', async () => {
  const { daemon, statusOf } = await startedWith();
  for (const site of ['cross-site', 'same-site']) {
    expect(await statusOf({ 'sec-fetch-site': site, 'sec-fetch-dest': 'image' }), site).toBe(403);
    expect(await statusOf({ 'sec-fetch-site': site, origin: 'http://localhost:3000' }), site).toBe(403);
  }
  const refused = daemon.logs.lines.filter(({ reasonCode }) => reasonCode === 'FOREIGN_ORIGIN');
  expect(refused).toHaveLength(4);
});

test('programs, the address bar, same-origin pages and other services are served', async () => {
  const { statusOf } = await startedWith();
  expect(await statusOf({})).toBe(200);
  for (const site of ['none', 'same-origin']) expect(await statusOf({ 'sec-fetch-site': site })).toBe(200);
  const trusted = serviceHeaders(TEST_KEYS.internalSecret, { namespaceId: 'default', hostId: 'h' });
  expect(await statusOf({ ...trusted, 'sec-fetch-site': 'cross-site' })).toBe(200);
});

test('pages of configured CORS origins are served, by their Origin or their Referer', async () => {
  const origins = ['https://studio.example'];
  const { statusOf } = await startedWith({ gateway: { cors: { origins } } });
  const site = { 'sec-fetch-site': 'cross-site' };
  expect(await statusOf({ ...site, origin: 'https://studio.example' })).toBe(200);
  expect(await statusOf({ ...site, referer: 'https://studio.example/' })).toBe(200);
  expect(await statusOf({ ...site, referer: 'https://studio.example.evil.example/' })).toBe(403);
  expect(await statusOf({ ...site, origin: 'null', referer: 'https://studio.example/' })).toBe(403);
});

test('a refused call is attributed to no tenant, whatever tenant it claims', async () => {
  const daemon = await startRest();
  const headers = { 'x-tenant-id': 'acme' };
  const { status } = await daemon.fetch('/api/v1/plugins/shop/for-users', { headers });
  expect(status).toBe(401);
  const refused = daemon.logs.lines.filter(({ event }) => event === 'auth.failed');
  expect(refused).toMatchObject([{ reasonCode: 'ROUTE_SECURITY' }]);
  expect(daemon.logs.lines.filter(({ tenantId }) => tenantId === 'acme')).toEqual([]);
});
