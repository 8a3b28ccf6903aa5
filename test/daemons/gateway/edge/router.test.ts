import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EdgeRoute, EdgeRouter } from '../../../../src/daemons/gateway/edge/router.ts';
import type { Upstream } from '../../../../src/daemons/gateway/proxy/upstreams.ts';

const UPSTREAM: Upstream = {
  ...{ name: 'rest', prefixes: ['/api/v1'], websocket: true, sandbox: true, basePath: '' },
  origin: () => 'http://127.0.0.1:1',
};

function createRouter(): EdgeRouter {
  const router = new EdgeRouter();
  const native = (method: string, pattern: string): void => router.add([method], { kind: 'native', pattern });
  native('GET', '/health');
  native('GET', '/api/v1/health');
  native('DELETE', '/api/v1/tokens/:jti');
  for (const pattern of ['/webhooks/:pluginId/:event', '/webhooks/:pluginId/:event/:instanceId'])
    router.add(['POST'], { kind: 'delivery', pattern });
  for (const pattern of ['/api/v1', '/api/v1/*'])
    router.add(['GET', 'DELETE'], { kind: 'proxied', pattern, upstream: UPSTREAM });
  return router;
}

const nativeRoute = (pattern: string): EdgeRoute => ({ kind: 'native', pattern });
const proxiedRoute = (pattern: string): EdgeRoute => ({ kind: 'proxied', pattern, upstream: UPSTREAM });

test.each([
  ['GET', '/health', nativeRoute('/health')],
  ['GET', '/health?a=1', nativeRoute('/health')],
  ['GET', '/api/v1/health', nativeRoute('/api/v1/health')],
  ['GET', '/api/v1/%68ealth', nativeRoute('/api/v1/health')],
  ['DELETE', '/api/v1/tokens/x', nativeRoute('/api/v1/tokens/:jti')],
  ['DELETE', '/api/v1/%74okens/x%2Fy', nativeRoute('/api/v1/tokens/:jti')],
  ['DELETE', '/api/v1/tokens/x/y', proxiedRoute('/api/v1/*')],
  ['GET', '/api/v1/tokens/x', proxiedRoute('/api/v1/*')],
  ['GET', '/api/v1', proxiedRoute('/api/v1')],
  ['GET', '/api/v1/', proxiedRoute('/api/v1/*')],
  ['GET', '/api/v1x', undefined],
  ['GET', '/API/v1/x', undefined],
  ['POST', '/api/v1/x', undefined],
  ['GET', '/health/', undefined],
  ['POST', '/webhooks/a', undefined],
  ['POST', '/webhooks/a/%ff', undefined],
  ['POST', `/webhooks/a/${'b'.repeat(3000)}`, undefined],
  ['OPTIONS', '*', undefined],
] as const)('%s %s', (method, url, route) => {
  expect(createRouter().find(method, url)?.route).toEqual(route);
});

test('the parts of a delivery path round-trip through encoding', () => {
  const router = createRouter();
  const part = fc.string({ minLength: 1, maxLength: 50, unit: 'grapheme' }).filter((text) => {
    try {
      return encodeURIComponent(text) !== '';
    } catch {
      return false;
    }
  });
  fc.assert(
    fc.property(part, part, fc.option(part, { nil: undefined }), (pluginId, event, instanceId) => {
      const parts = [pluginId, event, ...(instanceId === undefined ? [] : [instanceId])];
      const found = router.find('POST', `/webhooks/${parts.map(encodeURIComponent).join('/')}?namespace=x`);
      expect({ ...found!.params }).toEqual({
        pluginId,
        event,
        ...(instanceId === undefined ? {} : { instanceId }),
      });
    }),
  );
});
