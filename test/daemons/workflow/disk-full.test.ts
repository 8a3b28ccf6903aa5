import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startProcess } from './support/process.ts';

/** A file system of a few megabytes of its own; undefined where this user may not mount one. */
function smallDisk(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'svc-test', folder], { stdio: 'ignore' });
    return folder;
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
}

/** Takes all the room there is; gives it back when it is called. */
function fill(folder: string): () => void {
  const file = join(folder, 'filler');
  const fd = openSync(file, 'w');
  for (const size of [65_536, 4096, 512]) {
    try {
      for (;;) if (writeSync(fd, Buffer.alloc(size)) < size) break;
    } catch {
      // No room for a piece of this size.
    }
  }
  closeSync(fd);
  return () => unlinkSync(file);
}

test('on a full disk only stored writes are acknowledged, and work continues when there is room', async ({
  skip,
}) => {
  const disk = process.getuid?.() === 0 ? smallDisk() : undefined;
  if (disk === undefined) return skip('needs a user who may mount');
  onTestFinished(() => {
    execFileSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  const ledger = await startLedger();
  let answer = (): void => {};
  ledger.answer('held', (_, response) => {
    answer = () => response.end('{}');
  });
  const call = (name: string) => ({
    id: name,
    uses: 'http',
    with: { method: 'POST', url: `${ledger.url}/${name}` },
  });
  let daemon = await startProcess(disk, LEDGER_CONFIG);
  const id = await daemon.start({ steps: [call('held'), call('after')] });
  await expect.poll(() => ledger.count('held')).toBe(1);

  const free = fill(disk);
  const large = { input: 'x'.repeat(200_000) };
  await expect(
    (async () => {
      for (let i = 0; i < 50; i++) await daemon.start({ steps: [{ uses: 'set' }] }, large);
    })(),
  ).rejects.toMatchObject({ code: 'STORE_ERROR', status: 503, headers: { 'retry-after': '5' } });
  answer();
  // Its end cannot be written: the next step must not begin.
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(ledger.count('after')).toBe(0);
  expect((await daemon.run(id)).status).toBe('running');

  free();
  await expect.poll(async () => (await daemon.run(id)).status, { timeout: 30_000 }).toBe('succeeded');
  expect([ledger.count('held'), ledger.count('after')]).toEqual([1, 1]);
  await daemon.kill();
  daemon = await startProcess(disk, LEDGER_CONFIG);
  expect((await daemon.run(id)).status).toBe('succeeded');
  await daemon.kill();
}, 90_000);
