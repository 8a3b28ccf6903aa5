import { expect, test } from 'vitest';
import { standInVariables, testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 60_000 };
const INTERNAL_SECRET = `GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}`;

/** A config that names the addresses of all services. */
const ADDRESSES = {
  services: Object.fromEntries(
    ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [
      name,
      { url: `http://${name}.example:1` },
    ]),
  ),
};

const namesOf = ({ services }: { services: Array<{ name: string }> }) => services.map(({ name }) => name);

test('unknown names and an empty list are refused, with the names that exist', async () => {
  const { svc } = await testPlatform(...withStandIns());
  const unknown = await svc('up', '-d', '--services', 'gateway,rset');
  expect([unknown.code, unknown.json.error.message]).toEqual([
    2,
    'Unknown service "rset". Did you mean rest? Services: state, marketplace, workflow, rest, gateway.',
  ]);
  const empty = await svc('up', '-d', '--services', ',');
  expect([empty.code, empty.json.error.message]).toEqual([
    2,
    '--services is empty. Name one or more of state, marketplace, workflow, rest, gateway.',
  ]);
});

test('services whose addresses and shared secret are unknown are refused on SQLite', async () => {
  const { svc } = await testPlatform(...withStandIns());
  const { code, json } = await svc('up', '-d', '--services', 'gateway,rest');
  expect([code, json.error.code]).toEqual([1, 'VALIDATION_ERROR']);
  const lines = json.error.message.split('\n');
  expect(lines[0]).toBe(
    'rest, gateway cannot work without the other services. store.url is SQLite, so services of other nodes are not found by themselves:',
  );
  expect(lines.slice(1)).toEqual([
    '  services.state.url is not set, and this node does not run state.',
    '  services.marketplace.url is not set, and this node does not run marketplace.',
    '  services.workflow.url is not set, and this node does not run workflow.',
    '  GATEWAY_INTERNAL_SECRET is not set, with which services call each other.',
    'Set these, run all services here with `svc up`, or use PostgreSQL (docs/scale-out.md).',
  ]);
});

test('on PostgreSQL, services need a cluster to find each other', async () => {
  const store = { url: 'postgres://svc@127.0.0.1:1/svc' };
  const { svc } = await testPlatform(...withStandIns({ config: { store } }));
  const { json } = await svc('up', '-d', '--services', 'rest');
  expect(json.error.message).toBe(
    'This node does not run state, marketplace, workflow, gateway, and cluster.enabled is false, so it would not find other nodes. Set cluster.enabled to true on all nodes, or run all services here with `svc up`.',
  );
});

test('a node runs, shows, checks and restarts only the named services', SLOW, async () => {
  const [config, env, program] = withStandIns({ config: ADDRESSES });
  const dotEnv = [...standInVariables(), INTERNAL_SECRET];
  const { svc, start } = await testPlatform(config, env, program, dotEnv);
  const up = await svc('up', '-d', '--services', 'gateway, rest');
  expect([up.code, up.json.result && namesOf(up.json.result)]).toEqual([0, ['rest', 'gateway']]);
  expect(up.stderr).toContain('svc is running with only rest, gateway (profile');

  const status = await svc('status');
  expect(namesOf(status.json.result)).toEqual(['rest', 'gateway']);
  expect((await start('status').done).stdout).toMatch(/^svc \S+ is running with only rest, gateway in /);

  const { checks } = (await svc('doctor')).json.result;
  const messagesOf = (name: string) =>
    checks
      .filter((check: { name: string }) => check.name === name)
      .map(({ message }: { message: string }) => message);
  expect(messagesOf('supervisor')).toEqual([
    expect.stringMatching(/^this node runs only rest, gateway, which are ready \(pid \d+\)$/),
  ]);
  expect(messagesOf('ports')).toEqual([
    expect.stringMatching(/^held by this platform: rest \d+, gateway \d+$/),
  ]);

  const other = await svc('restart', 'state');
  expect([other.code, other.json.error.code, other.json.error.message]).toEqual([
    1,
    'NOT_FOUND',
    'This node does not run state: it was started with --services rest,gateway. Restart state on its own node, or add it with `svc down` and `svc up -d --services rest,gateway,state`.',
  ]);
  expect(namesOf((await svc('restart')).json.result)).toEqual(['rest', 'gateway']);

  const more = await svc('up', '-d', '--services', 'rest');
  expect(more.json.error.message).toBe('svc is already running, with the services rest,gateway.');
  const again = await svc('up', '-d');
  expect([again.code, again.json.result.alreadyRunning]).toEqual([0, true]);
  expect(again.stderr).toContain('svc is already running with only rest, gateway.');
});

test('commands on a node without a gateway tell how to select one', SLOW, async () => {
  const [config, env, program] = withStandIns();
  const { svc } = await testPlatform(config, env, program, [...standInVariables(), INTERNAL_SECRET]);
  expect((await svc('up', '-d', '--services', 'state')).code).toBe(0);
  const { code, json } = await svc('hosts', 'list');
  expect([code, json.error.message, json.error.details.hint]).toEqual([
    5,
    'This node runs no gateway, or it is restarting.',
    'See svc status. Select a gateway with --url, SVC_GATEWAY_URL or svc login.',
  ]);
});
