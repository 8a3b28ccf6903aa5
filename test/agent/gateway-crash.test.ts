import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { childrenOf } from '../daemons/gateway/support/start-processes.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import { createKillableGateway } from '../support/gateway-process.ts';
import { registerTestHost } from '../support/host-agent.ts';
import { PROJECT, startTestAgent } from './support.ts';

test('after a gateway crash the agent ends its executions and connects to the next gateway', async () => {
  const { url, start, call } = await createKillableGateway({
    plugins: [join(PROJECT, 'plugins/tools')],
    execution: { default: 'host' },
  });
  const child = await start();
  const host = await registerTestHost({ url }, ADMIN_TOKEN);
  const agent = await startTestAgent({ url } as TestGateway, { url, host });
  const before = new Set(childrenOf(process.pid));
  const lost = call('spin', { timeoutMs: 60_000 }).catch(() => 'lost');
  // The agent lives in this process; its runner is a child of it, and busier than by its start alone.
  const runner = (): number | undefined => childrenOf(process.pid).find((pid) => !before.has(pid));
  await expect.poll(() => cpuTicks(runner())).toBeGreaterThan(100);
  child.kill('SIGKILL');
  expect(await lost).toBe('lost');
  await start();
  // The agent waits up to half a minute between two attempts.
  await expect.poll(agent.welcomes, { timeout: 60_000 }).toBe(2);
  const reply = await call('echo', { input: 'again' });
  expect(await reply.json()).toMatchObject({ result: { result: 'again' } });
  expect(agent.logs.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringMatching(/process was ended|was killed|ended because/) }),
  );
});

/** Hundredths of a second of processor time. */
function cpuTicks(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]);
}
