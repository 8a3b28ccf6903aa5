import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startMcp } from '../../../support/mcp.ts';

test('clients that listen hear of added, changed and removed workflows', { timeout: 60_000 }, async () => {
  const { connect, gateway, workflow, projectDir } = await startMcp();
  const client = await connect(undefined, { pin: '2026-07-28' });
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
  const listening = await client.listen({ toolsListChanged: true });
  const file = join(projectDir, 'workflows/late.yaml');
  const definition = (title: string) =>
    JSON.stringify({
      ...{ id: 'late', mcp: { expose: true, title } },
      jobs: { main: { steps: [{ id: 'set', uses: 'set', with: {} }] } },
    });
  const title = async () =>
    (await client.listTools()).tools.find(({ name }) => name === 'workflow_late')?.title;
  const heard = async (count: number, expected: string | undefined) => {
    await expect
      .poll(
        () => {
          // The list is cached by the hand-moved clock.
          gateway.clock.advance(2000);
          return changes;
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBe(count);
    expect(await title()).toBe(expected);
  };
  // The first poll only reads which tools there are.
  const calls = () => workflow.logs.lines.map(({ message }) => message);
  await expect.poll(calls).toContain('GET /api/v1/workflows 200');
  await writeFile(file, definition('Late'));
  await heard(1, 'Late');
  await writeFile(file, definition('Later'));
  await heard(2, 'Later');
  await rm(file);
  await heard(3, undefined);
  await listening.close();
});
