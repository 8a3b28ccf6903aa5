import { expect, test } from 'vitest';
import { testPlatform, withStandIns } from '../cli/platform.ts';

test('a node of several does not start without shared settings, and doctor lists them', async () => {
  const { svc } = await testPlatform(...withStandIns({ config: { cluster: { enabled: true } } }));
  const { code, json } = await svc('up', '-d');
  expect([code, json.error.code]).toEqual([1, 'VALIDATION_ERROR']);
  const missing = [
    'store.url',
    'SVC_MASTER_KEY',
    'GATEWAY_JWT_SECRET',
    'SVC_OPERATOR_CLIENT_ID',
    'gateway.publicUrl',
  ];
  for (const name of missing) expect(json.error.message).toContain(name);

  const { checks } = (await svc('doctor')).json.result;
  const found = checks.filter(({ name }: { name: string }) => name === 'cluster');
  expect(found.map(({ message }: { message: string }) => message.split(' ')[0])).toEqual(
    expect.arrayContaining(missing),
  );
});
