import { expect, test } from 'vitest';
import { PlatformConfig } from '../../../src/contracts/index.ts';
import { clusterProblems, requireClusterSettings } from '../../../src/kit/config/cluster.ts';
import { drainDelayMsOf } from '../../../src/kit/config/drain-delay.ts';

const SECRETS = {
  SVC_MASTER_KEY: 'k',
  GATEWAY_JWT_SECRET: 'k',
  GATEWAY_INTERNAL_SECRET: 'k',
  SVC_OPERATOR_CLIENT_ID: 'k',
  SVC_OPERATOR_CLIENT_SECRET: 'k',
};
const NODE = {
  cluster: { enabled: true },
  store: { url: 'postgres://db/svc' },
  gateway: { publicUrl: 'https://svc.example.com' },
};
const configOf = (more: object = {}) => PlatformConfig.parse({ ...NODE, ...more });
const pathsOf = (config: PlatformConfig, env: Record<string, string> = SECRETS) =>
  clusterProblems(config, env).map(({ path }) => path);

test('a node with all shared settings may run beside others', () => {
  expect(clusterProblems(configOf(), SECRETS)).toEqual([]);
});

test('a platform of one node needs none of them', () => {
  expect(clusterProblems(PlatformConfig.parse({}), {})).toEqual([]);
});

test.each(Object.keys(SECRETS))('a node without a shared %s is refused', (variable) => {
  expect(pathsOf(configOf(), { ...SECRETS, [variable]: '' })).toEqual([variable]);
});

test('SQLite and a missing publicUrl are refused', () => {
  expect(pathsOf(configOf({ store: { url: 'sqlite:.svc' } }))).toEqual(['store.url']);
  expect(pathsOf(configOf({ gateway: {} }))).toEqual(['gateway.publicUrl']);
});

test('the error names everything that is missing, with the remedy', () => {
  const config = configOf({ gateway: {} });
  expect(() => requireClusterSettings(config, { ...SECRETS, SVC_MASTER_KEY: '' })).toThrow(
    /SVC_MASTER_KEY is not set: .* Set it to the same value on all nodes, or SVC_MASTER_KEY_FILE .*\n {2}gateway.publicUrl is null/,
  );
});

test('only the gateway of several nodes waits for load balancers by default', () => {
  const delays = (config: PlatformConfig) => [
    drainDelayMsOf(config, 'gateway'),
    drainDelayMsOf(config, 'rest'),
  ];
  expect(delays(PlatformConfig.parse({}))).toEqual([0, 0]);
  expect(delays(configOf())).toEqual([5000, 0]);
  expect(delays(configOf({ gateway: { drainDelayMs: 0 } }))).toEqual([0, 0]);
});
