import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { seconds } from '../../src/kit/time/duration.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { registerTestHost } from '../support/host-agent.ts';
import { createElsewhere, networkMissing } from './network.ts';
import { dispatch, spawnAgent, startHostGateway, startTestAgent } from './support.ts';

/** An agent on the other side of a cable that is pulled. */
async function start() {
  const elsewhere = createElsewhere();
  const gateway = await startHostGateway({ listen: { host: elsewhere.address, port: 0 } });
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const agent = await spawnAgent(gateway, host, elsewhere.within);
  const { hostSessions } = gateway.services as GatewayServices;
  const begun = () => gateway.logs.lines.filter(({ message }) => message === 'slow begins').length;
  const closes = () =>
    gateway.logs.lines.flatMap(({ event, reasonCode }) =>
      event === 'host.disconnected' ? [reasonCode] : [],
    );
  return { elsewhere, gateway, host, agent, hostSessions, begun, closes };
}

const LONG = { input: { ms: 600_000 }, timeoutMs: 600_000 };

describe.skipIf(networkMissing !== undefined)('over a network', { timeout: 120_000 }, () => {
  test('a pulled cable closes the connection after three beats; the agent reconnects and nothing runs twice', async () => {
    const { elsewhere, gateway, hostSessions, begun, closes } = await start();
    let isAnswered = false;
    const answer = dispatch(gateway, 'slow', LONG).finally(() => {
      isAnswered = true;
    });
    await expect.poll(begun).toBe(1);
    elsewhere.unplug();
    // What came through before is read first: it counts as a sign of life from when it is read.
    await sleep(500);
    gateway.clock.advance(seconds(44));
    await sleep(200);
    // Two beats missed are no end yet.
    expect([isAnswered, hostSessions.connected]).toEqual([false, 1]);
    gateway.clock.advance(seconds(2));
    expect((await answer).body.error.code).toBe('HOST_UNAVAILABLE');
    expect([closes(), hostSessions.connected]).toEqual([['4408'], 0]);
    expect((await dispatch(gateway, 'echo')).body.error.code).toBe('HOST_UNAVAILABLE');

    elsewhere.plugIn();
    // The agent learns of it by its next beat at the latest.
    await expect.poll(() => hostSessions.connected, { timeout: 60_000 }).toBe(1);
    expect((await dispatch(gateway, 'echo', { input: 'back' })).body.result.result).toBe('back');
    expect(begun()).toBe(1);
  });

  test('an outage shorter than the beat timeout only causes a delay', async () => {
    const { elsewhere, gateway, hostSessions, closes } = await start();
    const input = { ms: 1000 };
    const running = dispatch(gateway, 'slow', { input });
    const large = dispatch(gateway, 'echo', { input: 'x'.repeat(5 * 1024 * 1024) });
    elsewhere.unplug();
    await sleep(2000);
    elsewhere.plugIn();
    expect((await large).body.result.result).toHaveLength(5 * 1024 * 1024);
    expect((await running).body.result.result).toBe('done');
    expect([closes(), hostSessions.connected]).toEqual([[], 1]);
  });

  test('a new agent immediately replaces one that died behind a broken link', async () => {
    const { elsewhere, gateway, host, agent, begun, closes } = await start();
    const lost = dispatch(gateway, 'slow', LONG);
    await expect.poll(begun).toBe(1);
    elsewhere.unplug();
    const gone = once(agent, 'exit');
    agent.removeAllListeners('exit');
    agent.kill('SIGKILL');
    await Promise.race([gone, sleep(2000)]);
    // Its end never arrived: the gateway holds half a connection.
    await startTestAgent(gateway, { host });
    expect((await lost).body.error.code).toBe('HOST_UNAVAILABLE');
    expect(closes()).toEqual(['4409']);
    expect((await dispatch(gateway, 'echo', { input: 1 })).body.result.result).toBe(1);
    expect(begun()).toBe(1);
  });
});
